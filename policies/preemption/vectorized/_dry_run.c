/* The two loops of a dry run over all pods of all rows. See dry_run.py and disruption_budgets.py,
   whose functions do the same with NumPy.

   Arrays are buffers, (depth, rows), whose rows lie one after the other. Marks are bytes, numbers
   have 64 bits. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define ROWS 64 /* counted together: their numbers of one depth are a few cache lines */
#define COUNTS 16384 /* at most for these rows, so that they stay in the cache */

typedef struct {
    Py_buffer buffer;
    Py_ssize_t depth, rows, step; /* step: bytes from one depth to the next */
} Grid;

/* Take a two-dimensional buffer; return -1 with an error if it is none of items of this size. */
static int
take_grid(Grid *grid, PyObject *array, Py_ssize_t size, int flags)
{
    if (PyObject_GetBuffer(array, &grid->buffer, flags | PyBUF_STRIDES) < 0) {
        return -1;
    }
    const Py_buffer *buffer = &grid->buffer;
    int fits = buffer->ndim == 2 && (size == 0 || buffer->itemsize == size);
    fits = fits && (buffer->itemsize == 1 || buffer->itemsize == (Py_ssize_t)sizeof(int64_t));
    if (!fits || (buffer->strides[1] != buffer->itemsize && buffer->shape[1] > 1)) {
        PyBuffer_Release(&grid->buffer);
        PyErr_SetString(PyExc_ValueError, "not a grid of marks or of 64-bit numbers");
        return -1;
    }
    grid->depth = buffer->shape[0];
    grid->rows = buffer->shape[1];
    grid->step = buffer->strides[0];
    return 0;
}

static char *
at_depth(const Grid *grid, Py_ssize_t depth)
{
    return (char *)grid->buffer.buf + depth * grid->step;
}

/* Take a contiguous buffer of 64-bit numbers; return -1 with an error if it is none. */
static int
take_numbers(Py_buffer *numbers, PyObject *array, int flags)
{
    if (PyObject_GetBuffer(array, numbers, flags | PyBUF_ND) < 0) {
        return -1;
    }
    if (numbers->itemsize != (Py_ssize_t)sizeof(int64_t)) {
        PyBuffer_Release(numbers);
        PyErr_SetString(PyExc_ValueError, "not 64-bit numbers");
        return -1;
    }
    return 0;
}

typedef struct {
    Py_buffer left;
    Grid taken;
} Capacity;

/* Take the pairs (left, taken); return how many were taken, which are fewer after an error. */
static Py_ssize_t
take_capacities(Capacity *capacities, PyObject *pairs, const Grid *pods)
{
    Py_ssize_t place = 0;
    for (; place < PyTuple_GET_SIZE(pairs); place++) {
        Capacity *each = capacities + place;
        PyObject *left, *taken;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(pairs, place), "OO", &left, &taken) ||
            take_numbers(&each->left, left, PyBUF_WRITABLE) < 0) {
            return place;
        }
        if (take_grid(&each->taken, taken, 0, 0) < 0) {
            PyBuffer_Release(&each->left);
            return place;
        }
        if (each->taken.depth < pods->depth || each->taken.rows != pods->rows ||
            each->left.len != pods->rows * (Py_ssize_t)sizeof(int64_t)) {
            PyErr_SetString(PyExc_ValueError, "a capacity is not of the rows of the pods");
            return place + 1;
        }
    }
    return place;
}

static int64_t
amount(const Capacity *capacity, Py_ssize_t depth, Py_ssize_t row)
{
    const char *amounts = at_depth(&capacity->taken, depth);
    if (capacity->taken.buffer.itemsize == 1) {
        return ((const uint8_t *)amounts)[row];
    }
    return ((const int64_t *)amounts)[row];
}

/* Reprieve one pod if all capacities suffice. Which do is hard to predict, so nothing branches. */
static void
reprieve_one(const Capacity *capacities, Py_ssize_t count, Py_ssize_t depth, Py_ssize_t row,
             char *evicted)
{
    int suffice = 1;
    for (Py_ssize_t place = 0; place < count; place++) {
        const int64_t *left = capacities[place].left.buf;
        suffice &= left[row] >= amount(capacities + place, depth, row);
    }
    for (Py_ssize_t place = 0; place < count; place++) {
        int64_t *left = capacities[place].left.buf;
        left[row] -= amount(capacities + place, depth, row) & -(int64_t)suffice;
    }
    evicted[row] = (char)(evicted[row] & !suffice);
}

/* `places` has room for as many numbers as there are rows. */
static void
reprieve_all(const Grid *pods, const Grid *victims, const Capacity *capacities, Py_ssize_t count,
             Py_ssize_t *places)
{
    for (Py_ssize_t depth = 0; depth < pods->depth; depth++) {
        const char *marked = at_depth(pods, depth);
        Py_ssize_t found = 0;
        for (Py_ssize_t row = 0; row < pods->rows; row++) {
            places[found] = row;
            found += marked[row] != 0;
        }
        for (Py_ssize_t place = 0; place < found; place++) {
            reprieve_one(capacities, count, depth, places[place], at_depth(victims, depth));
        }
    }
}

static PyObject *
reprieve_from(const Grid *pods, const Grid *victims, PyObject *pairs)
{
    PyObject *result = NULL;
    if (victims->depth != pods->depth || victims->rows != pods->rows) {
        PyErr_SetString(PyExc_ValueError, "the victims are not of the rows of the pods");
        return NULL;
    }
    Capacity *capacities = PyMem_Calloc((size_t)PyTuple_GET_SIZE(pairs) + 1, sizeof(Capacity));
    Py_ssize_t *places = PyMem_Calloc((size_t)pods->rows + 1, sizeof(Py_ssize_t)), count = 0;
    if (capacities == NULL || places == NULL) {
        PyErr_NoMemory();
    } else {
        count = take_capacities(capacities, pairs, pods);
    }
    if (!PyErr_Occurred()) {
        reprieve_all(pods, victims, capacities, count, places);
        result = Py_NewRef(Py_None);
    }
    for (Py_ssize_t place = 0; place < count; place++) {
        PyBuffer_Release(&capacities[place].left);
        PyBuffer_Release(&capacities[place].taken.buffer);
    }
    PyMem_Free(places);
    PyMem_Free(capacities);
    return result;
}

static PyObject *
reprieve(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *marks, *evicted, *pairs, *result = NULL;
    Grid pods, victims;
    if (!PyArg_ParseTuple(arguments, "OOO!:reprieve", &marks, &evicted, &PyTuple_Type, &pairs) ||
        take_grid(&pods, marks, 1, 0) < 0) {
        return NULL;
    }
    if (take_grid(&victims, evicted, 1, PyBUF_WRITABLE) == 0) {
        result = reprieve_from(&pods, &victims, pairs);
        PyBuffer_Release(&victims.buffer);
    }
    PyBuffer_Release(&pods.buffer);
    return result;
}

typedef struct {
    Grid pods, classes, covering, violations;
    Py_buffer allowed;
    int64_t *counts; /* by budget, for each of the rows that are counted together */
    int64_t budgets;
    Py_ssize_t together;
    Py_ssize_t most; /* violations of a pod, after which it is not counted */
} Counting;

/* Count one pod against its budgets; return -1 for a number out of range. */
static int
count_pod(const Counting *all, Py_ssize_t depth, Py_ssize_t row, int64_t *counts)
{
    const int64_t number = ((const int64_t *)at_depth(&all->classes, depth))[row];
    const int64_t *allowed = all->allowed.buf;
    if (number < 0 || number >= all->covering.rows) {
        return -1;
    }
    Py_ssize_t violations = 0;
    for (Py_ssize_t rank = 0; rank < all->covering.depth; rank++) {
        const int64_t budget = ((const int64_t *)at_depth(&all->covering, rank))[number];
        if (budget >= all->budgets) {
            return -1;
        }
        if (budget >= 0 && violations < all->most) {
            violations += ++counts[budget] > allowed[budget];
        }
    }
    if (violations > 0) {
        at_depth(&all->violations, depth)[row] = 1;
    }
    return 0;
}

/* Count the pods of some rows, depth by depth, as they lie in memory. */
static int
count_rows(const Counting *all, Py_ssize_t first, Py_ssize_t stop)
{
    for (Py_ssize_t depth = 0; depth < all->pods.depth; depth++) {
        const char *marked = at_depth(&all->pods, depth);
        for (Py_ssize_t row = first; row < stop; row++) {
            int64_t *counts = all->counts + (row - first) * all->budgets;
            if (marked[row] && count_pod(all, depth, row, counts) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int
count_groups(const Counting *all)
{
    const size_t bytes = (size_t)(all->together * all->budgets) * sizeof(int64_t);
    for (Py_ssize_t first = 0; first < all->pods.rows; first += all->together) {
        const Py_ssize_t stop = first + all->together;
        memset(all->counts, 0, bytes);
        if (count_rows(all, first, stop < all->pods.rows ? stop : all->pods.rows) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *
count_all(Counting *all)
{
    const int same = all->classes.rows == all->pods.rows && all->classes.depth >= all->pods.depth &&
                     all->violations.rows == all->pods.rows &&
                     all->violations.depth == all->pods.depth;
    if (!same) {
        PyErr_SetString(PyExc_ValueError, "the classes or violations are not of the pods");
        return NULL;
    }
    all->budgets = all->allowed.len / (Py_ssize_t)sizeof(int64_t);
    all->together = all->budgets < COUNTS / ROWS ? ROWS : 1 + COUNTS / (all->budgets + 1);
    all->counts = PyMem_Calloc((size_t)(all->together * all->budgets) + 1, sizeof(int64_t));
    if (all->counts == NULL) {
        return PyErr_NoMemory();
    }
    const int counted = count_groups(all);
    PyMem_Free(all->counts);
    if (counted < 0) {
        PyErr_SetString(PyExc_ValueError, "a class or a budget does not exist");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
count_violations(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *pods, *classes, *covering, *allowed, *violations, *result = NULL;
    Counting all;
    if (!PyArg_ParseTuple(arguments, "OOOOOn:count_violations", &pods, &classes, &covering,
                          &allowed, &violations, &all.most)) {
        return NULL;
    }
    const Py_ssize_t number = (Py_ssize_t)sizeof(int64_t);
    Grid *grids[] = {&all.pods, &all.classes, &all.covering, &all.violations};
    PyObject *arrays[] = {pods, classes, covering, violations};
    const Py_ssize_t sizes[] = {1, number, number, 1};
    const int flags[] = {0, 0, 0, PyBUF_WRITABLE};
    int taken = 0;
    while (taken < 4 && take_grid(grids[taken], arrays[taken], sizes[taken], flags[taken]) == 0) {
        taken++;
    }
    if (taken == 4 && take_numbers(&all.allowed, allowed, 0) == 0) {
        result = count_all(&all);
        PyBuffer_Release(&all.allowed);
    }
    while (taken > 0) {
        PyBuffer_Release(&grids[--taken]->buffer);
    }
    return result;
}

static PyMethodDef functions[] = {
    {"reprieve", reprieve, METH_VARARGS, "Reprieve the pods that the rows can keep."},
    {"count_violations", count_violations, METH_VARARGS, "Mark the pods that violate budgets."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot no_slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "policies.preemption.vectorized._dry_run",
    .m_methods = functions,
    .m_slots = no_slots,
};

PyMODINIT_FUNC
PyInit__dry_run(void)
{
    return PyModuleDef_Init(&definition);
}
