// Loops and conditionals, and the layers at their borders.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_LOOPS_H
#define HEADRACE_TRT_LOOPS_H

#include "layers.h"

namespace nvinfer1 {

class ILoop;
class IIfConditional;

class ILoopBoundaryLayer : public ILayer {
public:
    ILoop *getLoop() const;
};

// Input 0: the first value; input 1: the next one.
class IRecurrenceLayer : public ILoopBoundaryLayer {};
class ITripLimitLayer : public ILoopBoundaryLayer {
public:
    HEADRACE_GET(TripLimit, getTripLimit, "kind")
};
class IIteratorLayer : public ILoopBoundaryLayer {
public:
    HEADRACE_PROPERTY(int32_t, getAxis, setAxis, "axis")
    HEADRACE_PROPERTY(bool, getReverse, setReverse, "reverse")
};
// Input 1: the length, of kCONCATENATE and kREVERSE.
class ILoopOutputLayer : public ILoopBoundaryLayer {
public:
    HEADRACE_GET(LoopOutput, getLoopOutput, "kind")
    HEADRACE_PROPERTY(int32_t, getAxis, setAxis, "axis")
};

class ILoop : public headrace::Object {
public:
    IRecurrenceLayer *addRecurrence(ITensor &initialValue) {
        return headrace::call<IRecurrenceLayer *>(this, "add_recurrence", {initialValue});
    }
    ITripLimitLayer *addTripLimit(ITensor &tensor, TripLimit limit) {
        return headrace::call<ITripLimitLayer *>(this, "add_trip_limit", {tensor, limit});
    }
    IIteratorLayer *addIterator(ITensor &tensor, int32_t axis = 0, bool reverse = false) {
        return headrace::call<IIteratorLayer *>(this, "add_iterator", {tensor, axis, reverse});
    }
    ILoopOutputLayer *addLoopOutput(ITensor &tensor, LoopOutput kind, int32_t axis = 0) {
        return headrace::call<ILoopOutputLayer *>(this, "add_loop_output", {tensor, kind, axis});
    }
    void setName(const char *name) { headrace::set(this, "name", name); }
    HEADRACE_GET(const char *, getName, "name")

private:
    ILoop() = delete;
};

inline ILoop *ILoopBoundaryLayer::getLoop() const { return headrace::get<ILoop *>(this, "loop"); }

class IIfConditionalBoundaryLayer : public ILayer {};
class IIfConditionalOutputLayer : public IIfConditionalBoundaryLayer {};
class IIfConditionalInputLayer : public IIfConditionalBoundaryLayer {};
class IConditionLayer : public IIfConditionalBoundaryLayer {};

class IIfConditional : public headrace::Object {
public:
    IConditionLayer *setCondition(ITensor &condition) {
        return headrace::call<IConditionLayer *>(this, "set_condition", {condition});
    }
    IIfConditionalOutputLayer *addOutput(ITensor &yes, ITensor &no) {
        return headrace::call<IIfConditionalOutputLayer *>(this, "add_output", {yes, no});
    }
    IIfConditionalInputLayer *addInput(ITensor &input) {
        return headrace::call<IIfConditionalInputLayer *>(this, "add_input", {input});
    }
    void setName(const char *name) { headrace::set(this, "name", name); }
    HEADRACE_GET(const char *, getName, "name")

private:
    IIfConditional() = delete;
};

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_LOOPS_H
