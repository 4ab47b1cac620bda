/* The two loops of a dry run over all pods of all rows. See reprieve.py and disruption_budgets.py,
   whose functions do the same with NumPy.

   Arrays are buffers, (depth, rows), whose rows lie one after the other. Marks are bytes, numbers
   have 64 bits. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

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

static int
fits(const Capacity *capacities, Py_ssize_t count, Py_ssize_t depth, Py_ssize_t row)
{
    for (Py_ssize_t place = 0; place < count; place++) {
        const int64_t *left = capacities[place].left.buf;
        if (left[row] < amount(capacities + place, depth, row)) {
            return 0;
        }
    }
    return 1;
}

static void
reprieve_all(const Grid *pods, const Grid *victims, const Capacity *capacities, Py_ssize_t count)
{
    for (Py_ssize_t depth = 0; depth < pods->depth; depth++) {
        const char *marked = at_depth(pods, depth);
        char *evicted = at_depth(victims, depth);
        for (Py_ssize_t row = 0; row < pods->rows; row++) {
            if (!marked[row] || !fits(capacities, count, depth, row)) {
                continue;
            }
            for (Py_ssize_t place = 0; place < count; place++) {
                int64_t *left = capacities[place].left.buf;
                left[row] -= amount(capacities + place, depth, row);
            }
            evicted[row] = 0;
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
    if (capacities == NULL) {
        return PyErr_NoMemory();
    }
    Py_ssize_t count = take_capacities(capacities, pairs, pods);
    if (!PyErr_Occurred()) {
        reprieve_all(pods, victims, capacities, count);
        result = Py_NewRef(Py_None);
    }
    for (Py_ssize_t place = 0; place < count; place++) {
        PyBuffer_Release(&capacities[place].left);
        PyBuffer_Release(&capacities[place].taken.buffer);
    }
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
    int64_t *counts; /* by budget, 0 between two rows */
    int64_t budgets;
    int until_first;
} Counting;

/* Count one pod against its budgets, or take it back; return -1 for a number out of range. */
static int
count_pod(const Counting *all, Py_ssize_t depth, Py_ssize_t row, int64_t by)
{
    const int64_t number = ((const int64_t *)at_depth(&all->classes, depth))[row];
    const int64_t *allowed = all->allowed.buf;
    char *violating = at_depth(&all->violations, depth) + row;
    int violates = 0;
    if (number < 0 || number >= all->covering.rows) {
        return -1;
    }
    for (Py_ssize_t rank = 0; rank < all->covering.depth; rank++) {
        const int64_t budget = ((const int64_t *)at_depth(&all->covering, rank))[number];
        if (budget >= all->budgets) {
            return -1;
        }
        if (budget < 0 || (violates && all->until_first)) {
            continue;
        }
        if (by < 0) {
            all->counts[budget] = 0;
        } else {
            all->counts[budget]++;
            violates |= all->counts[budget] > allowed[budget];
        }
    }
    if (by > 0 && violates) {
        *violating = 1;
    }
    return 0;
}

static int
count_rows(const Counting *all)
{
    for (Py_ssize_t row = 0; row < all->pods.rows; row++) {
        for (int64_t by = 1; by >= -1; by -= 2) {
            for (Py_ssize_t depth = 0; depth < all->pods.depth; depth++) {
                if (at_depth(&all->pods, depth)[row] && count_pod(all, depth, row, by) < 0) {
                    return -1;
                }
            }
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
    all->counts = PyMem_Calloc((size_t)all->budgets + 1, sizeof(int64_t));
    if (all->counts == NULL) {
        return PyErr_NoMemory();
    }
    const int counted = count_rows(all);
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
    if (!PyArg_ParseTuple(arguments, "OOOOOp:count_violations", &pods, &classes, &covering,
                          &allowed, &violations, &all.until_first)) {
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
