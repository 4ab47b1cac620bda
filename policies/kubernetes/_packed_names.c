/* Names packed in one text: their offsets, their positions among other names, and some of them as
   another text. See packed_names.py.

   A text is a JSON array of strings as Go writes it, ["a","b"], and plain: ASCII without escapes
   and control characters, so that a byte is a character, and a quote begins or ends a name.
   Its `begins` are native 32-bit numbers in a bytes object: the offset of each name, and at the end
   the offset that one more name would have. `slots` are such numbers, too, an open hash table:
   positions of names counted from 1, or 0 for none; their number is a power of two, at least twice
   the number of names. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define BETWEEN 3 /* bytes from the end of a name to the next name: "," */
#define LONGEST 253 /* bytes of a name of Kubernetes */
#define NUMBER ((Py_ssize_t)sizeof(uint32_t))
#define MIXER UINT64_C(0x9E3779B97F4A7C15)

typedef struct {
    const char *text;
    const char *begins;
    Py_ssize_t count;
} Names;

typedef struct {
    const char *start;
    size_t length;
} Name;

static uint32_t
get(const char *numbers, Py_ssize_t place)
{
    uint32_t number;
    memcpy(&number, numbers + place * NUMBER, sizeof number);
    return number;
}

static void
set(char *numbers, Py_ssize_t place, uint32_t number)
{
    memcpy(numbers + place * NUMBER, &number, sizeof number);
}

/* Set the names of a text; return -1 with an error if they are not in it, one after the other. */
static int
take(Names *names, const Py_buffer *text, PyObject *begins)
{
    names->text = text->buf;
    names->begins = PyBytes_AS_STRING(begins);
    names->count = PyBytes_GET_SIZE(begins) / NUMBER - 1;
    int lie_there = names->count >= 0;
    for (Py_ssize_t place = 0; place < names->count; place++) {
        Py_ssize_t begin = get(names->begins, place), next = get(names->begins, place + 1);
        lie_there &= 0 < begin && begin + BETWEEN <= next && next <= text->len + 1;
    }
    if (!lie_there) {
        PyErr_SetString(PyExc_ValueError, "the begins are not those of the text");
    }
    return lie_there ? 0 : -1;
}

static Name
name_at(const Names *names, Py_ssize_t place)
{
    uint32_t begin = get(names->begins, place);
    Name name = {names->text + begin, get(names->begins, place + 1) - BETWEEN - begin};
    return name;
}

static int
is_at(const Names *names, Py_ssize_t place, Name wanted)
{
    if (place >= names->count) {
        return 0;
    }
    Name name = name_at(names, place);
    return name.length == wanted.length && memcmp(name.start, wanted.start, name.length) == 0;
}

/* Return the hash of a name. Mix eight bytes at a time, because this takes most of the time. */
static size_t
hash_of(Name name)
{
    uint64_t word, mixed = name.length;
    for (; name.length >= sizeof word; name.start += sizeof word, name.length -= sizeof word) {
        memcpy(&word, name.start, sizeof word);
        mixed = (mixed ^ word) * MIXER;
        mixed ^= mixed >> 32;
    }
    word = 0;
    memcpy(&word, name.start, name.length);
    mixed = (mixed ^ word) * MIXER;
    return (size_t)(mixed ^ mixed >> 32);
}

static int
is_plain(const char *text, Py_ssize_t length)
{
    unsigned char odd = 0;
    for (Py_ssize_t at = 0; at < length; at++) {
        unsigned char byte = (unsigned char)text[at];
        odd |= (byte < 0x20) | (byte > 0x7F) | (byte == '\\');
    }
    return !odd;
}

static Py_ssize_t
count_names(const char *text, Py_ssize_t length)
{
    uint32_t quotes = 0;
    for (Py_ssize_t at = 0; at < length; at++) {
        quotes += text[at] == '"';
    }
    return quotes / 2;
}

/* Write the offsets of `count` names; return 0 if brackets, quotes or commas are not as in Go. */
static int
write_begins(const char *text, Py_ssize_t length, char *begins, Py_ssize_t count)
{
    Py_ssize_t at = 0; /* the bracket or comma before a name, or the bracket after the last */
    for (Py_ssize_t place = 0; place < count; place++) {
        if (length - at < BETWEEN || text[at] != (place ? ',' : '[') || text[at + 1] != '"') {
            return 0;
        }
        Py_ssize_t left = length - at - 2;
        const char *end = memchr(text + at + 2, '"', left > LONGEST ? LONGEST + 1 : (size_t)left);
        if (end == NULL) {
            return 0;
        }
        set(begins, place, (uint32_t)(at + 2));
        at = end + 1 - text;
    }
    set(begins, count, (uint32_t)(at + 2));
    return count ? at == length - 1 && text[at] == ']' : length == 2 && !memcmp(text, "[]", 2);
}

static PyObject *
split(PyObject *Py_UNUSED(module), PyObject *given)
{
    Py_buffer text;
    if (PyObject_GetBuffer(given, &text, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    PyObject *begins = NULL;
    if (text.len < INT32_MAX && is_plain(text.buf, text.len)) {
        Py_ssize_t count = count_names(text.buf, text.len);
        begins = PyBytes_FromStringAndSize(NULL, (count + 1) * NUMBER);
        if (begins && !write_begins(text.buf, text.len, PyBytes_AS_STRING(begins), count)) {
            Py_CLEAR(begins);
        }
    }
    PyBuffer_Release(&text);
    return begins || PyErr_Occurred() ? begins : Py_NewRef(Py_None);
}

static PyObject *
index_names(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer text;
    PyObject *begins, *slots = NULL;
    Names names;
    if (!PyArg_ParseTuple(arguments, "y*S:index", &text, &begins)) {
        return NULL;
    }
    if (take(&names, &text, begins) == 0) {
        Py_ssize_t size = 1;
        while (size < 2 * names.count) {
            size *= 2;
        }
        slots = PyBytes_FromStringAndSize(NULL, size * NUMBER);
    }
    if (slots) {
        char *table = PyBytes_AS_STRING(slots);
        size_t mask = (size_t)(PyBytes_GET_SIZE(slots) / NUMBER - 1);
        memset(table, 0, (size_t)PyBytes_GET_SIZE(slots));
        for (Py_ssize_t place = 0; place < names.count; place++) {
            size_t slot = hash_of(name_at(&names, place)) & mask;
            while (get(table, (Py_ssize_t)slot)) {
                slot = (slot + 1) & mask;
            }
            set(table, (Py_ssize_t)slot, (uint32_t)place + 1);
        }
    }
    PyBuffer_Release(&text);
    return slots;
}

/* Return the position of a name among the known ones, or -1 if it is not known. */
static Py_ssize_t
place_of(Name wanted, const Names *known, PyObject *slots)
{
    Py_ssize_t size = PyBytes_GET_SIZE(slots) / NUMBER;
    size_t slot = hash_of(wanted);
    for (Py_ssize_t tried = 0; tried < size; tried++, slot++) {
        Py_ssize_t place = get(PyBytes_AS_STRING(slots), (Py_ssize_t)(slot & (size_t)(size - 1)));
        if (place == 0) {
            return -1;
        }
        if (is_at(known, place - 1, wanted)) {
            return place - 1;
        }
    }
    return -1;
}

/* Write the position of each name; return 0 if one is not known, or occurs twice. The bytes of
   `seen` are 0 at first. */
static int
write_places(const Names *wanted, const Names *known, PyObject *slots, char *places, char *seen)
{
    int64_t found = -1;
    for (Py_ssize_t place = 0; place < wanted->count; place++) {
        Name name = name_at(wanted, place);
        found++; /* names in the order of the known ones need no search */
        if (!is_at(known, (Py_ssize_t)found, name)) {
            found = place_of(name, known, slots);
        }
        if (found < 0 || seen[found]) {
            return 0;
        }
        seen[found] = 1;
        memcpy(places + place * (Py_ssize_t)sizeof found, &found, sizeof found);
    }
    return 1;
}

static PyObject *
places_of(const Names *wanted, const Names *known, PyObject *slots)
{
    char *seen = PyMem_Calloc((size_t)known->count + 1, 1);
    if (seen == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *places = PyBytes_FromStringAndSize(NULL, wanted->count * (Py_ssize_t)sizeof(int64_t));
    if (places && !write_places(wanted, known, slots, PyBytes_AS_STRING(places), seen)) {
        Py_SETREF(places, Py_NewRef(Py_None));
    }
    PyMem_Free(seen);
    return places;
}

static PyObject *
find(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer text, wanted_text;
    PyObject *slots, *begins, *wanted_begins, *places = NULL;
    Names known, wanted;
    if (!PyArg_ParseTuple(arguments, "Sy*Sy*S:find", &slots, &text, &begins, &wanted_text,
                          &wanted_begins)) {
        return NULL;
    }
    if (take(&known, &text, begins) == 0 && take(&wanted, &wanted_text, wanted_begins) == 0) {
        places = places_of(&wanted, &known, slots);
    }
    PyBuffer_Release(&wanted_text);
    PyBuffer_Release(&text);
    return places;
}

/* Return the size of a text with the marked names; count them. */
static Py_ssize_t
measure_marked(const Names *names, const char *marks, Py_ssize_t *count)
{
    size_t size = 0;
    for (Py_ssize_t place = 0; place < names->count; place++) {
        if (marks[place]) {
            size += name_at(names, place).length + BETWEEN;
            ++*count;
        }
    }
    return size ? (Py_ssize_t)size + 1 : 2;
}

/* Write the text with the marked names, and their offsets. */
static void
write_marked(const Names *names, const char *marks, char *text, char *begins)
{
    char *at = text; /* the bracket or comma before a name, or the bracket after the last */
    memcpy(text, "[]", 2);
    for (Py_ssize_t place = 0; place < names->count; place++) {
        if (marks[place]) {
            Name name = name_at(names, place);
            set(begins, 0, (uint32_t)(at + 2 - text));
            begins += NUMBER;
            memcpy(at + 1, name.start - 1, name.length + 2); /* with its quotes */
            at += name.length + BETWEEN;
            *at = ',';
        }
    }
    set(begins, 0, (uint32_t)(at + 2 - text));
    if (at > text) {
        *at = ']';
    }
}

static PyObject *
select_names(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer text, marks;
    PyObject *begins, *selected = NULL;
    Names names;
    if (!PyArg_ParseTuple(arguments, "y*Sy*:select", &text, &begins, &marks)) {
        return NULL;
    }
    int is_valid = take(&names, &text, begins) == 0;
    if (is_valid && marks.len != names.count) {
        PyErr_SetString(PyExc_ValueError, "the marks are not those of the names");
        is_valid = 0;
    }
    if (is_valid) {
        Py_ssize_t count = 0, size = measure_marked(&names, marks.buf, &count);
        PyObject *found = PyBytes_FromStringAndSize(NULL, size);
        PyObject *places = PyBytes_FromStringAndSize(NULL, (count + 1) * NUMBER);
        if (found && places) {
            write_marked(&names, marks.buf, PyBytes_AS_STRING(found), PyBytes_AS_STRING(places));
            selected = PyTuple_Pack(2, found, places);
        }
        Py_XDECREF(found);
        Py_XDECREF(places);
    }
    PyBuffer_Release(&marks);
    PyBuffer_Release(&text);
    return selected;
}

static PyMethodDef functions[] = {
    {"split", split, METH_O, "Return where each name of a plain text begins, or None."},
    {"index", index_names, METH_VARARGS, "Return a hash table of the indices of names."},
    {"find", find, METH_VARARGS, "Return the index of each name, or None if it is not unique."},
    {"select", select_names, METH_VARARGS, "Return the text of some names, and their offsets."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot no_slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "policies.kubernetes._packed_names",
    .m_methods = functions,
    .m_slots = no_slots,
};

PyMODINIT_FUNC
PyInit__packed_names(void)
{
    return PyModuleDef_Init(&definition);
}
