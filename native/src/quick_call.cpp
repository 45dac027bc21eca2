#include "quick_call.h"

#include <exception>
#include <new>

#include "module.h"

namespace nb = nanobind;

namespace {

struct QuickCaller {
    PyObject_HEAD
    PyObject *quick;    // a QuickCalls of Python, or null
    QuickCalls *calls;  // the one in it
};

PyObject *set_quick(PyObject *self, PyObject *value) {
    auto *caller = reinterpret_cast<QuickCaller *>(self);
    QuickCalls *calls = nullptr;
    if (!nb::try_cast(nb::handle(value), calls) || !calls) {
        PyErr_SetString(PyExc_TypeError, "it must be a QuickCalls");
        return nullptr;
    }
    Py_INCREF(value);
    caller->calls = calls;
    Py_XSETREF(caller->quick, value);
    Py_RETURN_NONE;
}

PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs) {
    auto *caller = reinterpret_cast<QuickCaller *>(self);
    if (!caller->calls || (kwargs && PyDict_GET_SIZE(kwargs)) || PyTuple_GET_SIZE(args) != 3) {
        static PyObject *const name = PyUnicode_InternFromString("further");
        PyObject *further = PyObject_GetAttr(self, name);
        if (!further) return nullptr;
        PyObject *found = PyObject_Call(further, args, kwargs);
        Py_DECREF(further);
        return found;
    }
    const nb::object held = nb::borrow(caller->quick);
    try {
        PyObject *const *given = reinterpret_cast<PyTupleObject *>(args)->ob_item;
        return caller->calls->call(self, given[0], given[1], given[2]).release().ptr();
    } catch (nb::python_error &error) {
        error.restore();
    } catch (const std::bad_alloc &) {
        PyErr_NoMemory();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(reinterpret_cast<QuickCaller *>(self)->quick);
    return 0;
}

int clear(PyObject *self) {
    auto *caller = reinterpret_cast<QuickCaller *>(self);
    caller->calls = nullptr;
    Py_CLEAR(caller->quick);
    return 0;
}

void dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    clear(self);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"set_quick", set_quick, METH_O,
     "set_quick($self, calls, /)\n--\n\nGive the QuickCalls that does calls natively."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void *>(call)},
    {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
    {Py_tp_clear, reinterpret_cast<void *>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char *>("Called without Python where `set_quick` gave what can, else by `further`.")},
    {0, nullptr},
};

PyType_Spec spec = {"noria._native.QuickCaller", sizeof(QuickCaller), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

void bind_quick_call(nb::module_ &m) {
    nb::class_<QuickCalls>(m, "QuickCalls", "Calls that may be done natively.");
    PyObject *type = PyType_FromSpec(&spec);
    if (!type) throw nb::python_error();
    m.attr("QuickCaller") = nb::steal(type);
}
