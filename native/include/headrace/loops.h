// Loops and conditionals, and the layers at their borders.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_LOOPS_H
#define HEADRACE_TRT_LOOPS_H

#include "attention.h"

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
    HEADRACE_CALL(IRecurrenceLayer *, addRecurrence(ITensor &initialValue), "add_recurrence",
                  initialValue)
    HEADRACE_CALL(ITripLimitLayer *, addTripLimit(ITensor &tensor, TripLimit limit),
                  "add_trip_limit", tensor, limit)
    HEADRACE_CALL(IIteratorLayer *,
                  addIterator(ITensor &tensor, int32_t axis = 0, bool reverse = false),
                  "add_iterator", tensor, axis, reverse)
    HEADRACE_CALL(ILoopOutputLayer *,
                  addLoopOutput(ITensor &tensor, LoopOutput kind, int32_t axis = 0),
                  "add_loop_output", tensor, kind, axis)
    HEADRACE_PROPERTY(const char *, getName, setName, "name")

private:
    ILoop() = delete;
};

inline ILoop *ILoopBoundaryLayer::getLoop() const { return headrace::get<ILoop *>(this, "loop"); }

class IIfConditionalBoundaryLayer : public ILayer {
public:
    IIfConditional *getConditional() const;
};
class IIfConditionalOutputLayer : public IIfConditionalBoundaryLayer {};
class IIfConditionalInputLayer : public IIfConditionalBoundaryLayer {};
class IConditionLayer : public IIfConditionalBoundaryLayer {};

class IIfConditional : public headrace::Object {
public:
    HEADRACE_CALL(IConditionLayer *, setCondition(ITensor &condition), "set_condition", condition)
    HEADRACE_CALL(IIfConditionalOutputLayer *, addOutput(ITensor &yes, ITensor &no), "add_output",
                  yes, no)
    HEADRACE_CALL(IIfConditionalInputLayer *, addInput(ITensor &input), "add_input", input)
    HEADRACE_PROPERTY(const char *, getName, setName, "name")

private:
    IIfConditional() = delete;
};

inline IIfConditional *IIfConditionalBoundaryLayer::getConditional() const {
    return headrace::get<IIfConditional *>(this, "conditional");
}

}  // namespace nvinfer1

#endif  // HEADRACE_TRT_LOOPS_H
