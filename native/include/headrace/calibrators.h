// What sources derive from to show a builder their images, so that it may choose INT8 scales.
//
// Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_CALIBRATORS_H
#define HEADRACE_TRT_CALIBRATORS_H

#include "logger.h"
#include "tensor.h"

namespace nvinfer1 {

enum class CalibrationAlgoType : int32_t {
    kLEGACY_CALIBRATION = 0,
    kENTROPY_CALIBRATION = 1,
    kENTROPY_CALIBRATION_2 = 2,
    kMINMAX_CALIBRATION = 3
};

class IInt8Calibrator : public IVersionedInterface {
public:
    virtual int32_t getBatchSize() const = 0;
    virtual bool getBatch(void *bindings[], const char *names[], int32_t nbBindings) = 0;
    virtual const void *readCalibrationCache(std::size_t &length) = 0;
    virtual void writeCalibrationCache(const void *ptr, std::size_t length) = 0;
    virtual CalibrationAlgoType getAlgorithm() = 0;
};

class IInt8EntropyCalibrator : public IInt8Calibrator {
public:
    CalibrationAlgoType getAlgorithm() override {
        return CalibrationAlgoType::kENTROPY_CALIBRATION;
    }
};

class IInt8EntropyCalibrator2 : public IInt8Calibrator {
public:
    CalibrationAlgoType getAlgorithm() override {
        return CalibrationAlgoType::kENTROPY_CALIBRATION_2;
    }
};

class IInt8MinMaxCalibrator : public IInt8Calibrator {
public:
    CalibrationAlgoType getAlgorithm() override { return CalibrationAlgoType::kMINMAX_CALIBRATION; }
};

class IInt8LegacyCalibrator : public IInt8Calibrator {
public:
    CalibrationAlgoType getAlgorithm() override { return CalibrationAlgoType::kLEGACY_CALIBRATION; }
    virtual double getQuantile() const = 0;
    virtual double getRegressionCutoff() const = 0;
    virtual const void *readHistogramCache(std::size_t &length) = 0;
    virtual void writeHistogramCache(const void *ptr, std::size_t length) = 0;
};

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {

struct CalibratorCalls {
    static nvinfer1::IInt8Calibrator *of(void *self) {
        return static_cast<nvinfer1::IInt8Calibrator *>(self);
    }
    static int32_t batchSize(void *self) { return of(self)->getBatchSize(); }
    static int32_t getBatch(void *self, void **bindings, const char **names, int32_t n) {
        return of(self)->getBatch(bindings, names, n);
    }
    static const void *readCache(void *self, size_t *length) {
        return of(self)->readCalibrationCache(*length);
    }
    static void writeCache(void *self, const void *data, size_t length) {
        of(self)->writeCalibrationCache(data, length);
    }
};

inline void setCalibrator(const Object *owner, nvinfer1::IInt8Calibrator *calibrator) {
    headrace_calibrator_calls calls = {};
    calls.size = sizeof(calls);
    calls.algorithm = calibrator ? static_cast<int32_t>(calibrator->getAlgorithm()) : 0;
    calls.batch_size = &CalibratorCalls::batchSize;
    calls.get_batch = &CalibratorCalls::getBatch;
    calls.read_cache = &CalibratorCalls::readCache;
    calls.write_cache = &CalibratorCalls::writeCache;
    set(owner, "int8_calibrator", Value::foreign(HEADRACE_CALIBRATOR, calibrator, &calls));
}

inline nvinfer1::IInt8Calibrator *getCalibrator(const Object *owner) {
    headrace_value result = {};
    if (const headrace_host *h = host())
        h->get(owner->headraceObject(), "int8_calibrator", &result);
    return result.kind == HEADRACE_CALIBRATOR ? CalibratorCalls::of(const_cast<void *>(result.data))
                                              : nullptr;
}

}  // namespace HEADRACE_GENERATION
}  // namespace headrace

#endif  // HEADRACE_TRT_CALIBRATORS_H
