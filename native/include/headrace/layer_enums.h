// What layers can be told. Part of headrace, Apache-2.0. Valid C++11.
#ifndef HEADRACE_TRT_LAYER_ENUMS_H
#define HEADRACE_TRT_LAYER_ENUMS_H

#include "host_call.h"

namespace nvinfer1 {

enum class ActivationType : int32_t {
    kRELU = 0,
    kSIGMOID = 1,
    kTANH = 2,
    kLEAKY_RELU = 3,
    kELU = 4,
    kSELU = 5,
    kSOFTSIGN = 6,
    kSOFTPLUS = 7,
    kCLIP = 8,
    kHARD_SIGMOID = 9,
    kSCALED_TANH = 10,
    kTHRESHOLDED_RELU = 11,
    kGELU_ERF = 12,
    kGELU_TANH = 13
};

enum class WeightsRole : int32_t {
    kKERNEL = 0,
    kBIAS = 1,
    kSHIFT = 2,
    kSCALE = 3,
    kCONSTANT = 4,
    kANY = 5
};

enum class TripLimit : int32_t { kCOUNT = 0, kWHILE = 1 };
enum class LoopOutput : int32_t { kLAST_VALUE = 0, kCONCATENATE = 1, kREVERSE = 2 };

enum class PoolingType : int32_t { kMAX = 0, kAVERAGE = 1, kMAX_AVERAGE_BLEND = 2 };

enum class PaddingMode : int32_t {
    kEXPLICIT_ROUND_DOWN = 0,
    kEXPLICIT_ROUND_UP = 1,
    kSAME_UPPER = 2,
    kSAME_LOWER = 3,
    kCAFFE_ROUND_DOWN = 4,
    kCAFFE_ROUND_UP = 5
};

enum class ElementWiseOperation : int32_t {
    kSUM = 0,
    kPROD = 1,
    kMAX = 2,
    kMIN = 3,
    kSUB = 4,
    kDIV = 5,
    kPOW = 6,
    kFLOOR_DIV = 7,
    kAND = 8,
    kOR = 9,
    kXOR = 10,
    kEQUAL = 11,
    kGREATER = 12,
    kLESS = 13
};

enum class UnaryOperation : int32_t {
    kEXP = 0,
    kLOG = 1,
    kSQRT = 2,
    kRECIP = 3,
    kABS = 4,
    kNEG = 5,
    kSIN = 6,
    kCOS = 7,
    kTAN = 8,
    kSINH = 9,
    kCOSH = 10,
    kASIN = 11,
    kACOS = 12,
    kATAN = 13,
    kASINH = 14,
    kACOSH = 15,
    kATANH = 16,
    kCEIL = 17,
    kFLOOR = 18,
    kERF = 19,
    kNOT = 20,
    kSIGN = 21,
    kROUND = 22,
    kISINF = 23,
    kISNAN = 24
};

enum class ReduceOperation : int32_t { kSUM = 0, kPROD = 1, kMAX = 2, kMIN = 3, kAVG = 4 };
enum class ScaleMode : int32_t { kUNIFORM = 0, kCHANNEL = 1, kELEMENTWISE = 2 };
enum class MatrixOperation : int32_t { kNONE = 0, kTRANSPOSE = 1, kVECTOR = 2 };
enum class CumulativeOperation : int32_t { kSUM = 0 };
enum class AttentionNormalizationOp : int32_t { kNONE = 0, kSOFTMAX = 1 };
enum class CausalMaskKind : int32_t { kNONE = 0, kUPPER_LEFT = 1, kLOWER_RIGHT = 2 };
enum class AttentionIOForm : int32_t { kPADDED_BHND = 0, kPACKED_NHD = 1 };
enum class KVCacheMode : int32_t { kLINEAR = 0 };
enum class MoEActType : int32_t { kNONE = 0, kSILU = 1 };
enum class CollectiveOperation : int32_t {
    kALL_REDUCE = 0,
    kALL_GATHER = 1,
    kBROADCAST = 2,
    kREDUCE = 3,
    kREDUCE_SCATTER = 4,
    kALL_TO_ALL = 5,
    kGATHER = 6,
    kSCATTER = 7
};
enum class TopKOperation : int32_t { kMAX = 0, kMIN = 1 };
enum class GatherMode : int32_t { kDEFAULT = 0, kELEMENT = 1, kND = 2 };
enum class ScatterMode : int32_t { kELEMENT = 0, kND = 1 };
enum class FillOperation : int32_t { kLINSPACE = 0, kRANDOM_UNIFORM = 1, kRANDOM_NORMAL = 2 };
enum class InterpolationMode : int32_t { kNEAREST = 0, kLINEAR = 1, kCUBIC = 2 };
using ResizeMode = InterpolationMode;

enum class ResizeCoordinateTransformation : int32_t {
    kALIGN_CORNERS = 0,
    kASYMMETRIC = 1,
    kHALF_PIXEL = 2
};
enum class ResizeSelector : int32_t { kFORMULA = 0, kUPPER = 1 };
enum class ResizeRoundMode : int32_t { kHALF_UP = 0, kHALF_DOWN = 1, kFLOOR = 2, kCEIL = 3 };

enum class SampleMode : int32_t {
    kSTRICT_BOUNDS = 0,
    kDEFAULT = kSTRICT_BOUNDS,
    kWRAP = 1,
    kCLAMP = 2,
    kFILL = 3,
    kREFLECT = 4
};
using SliceMode = SampleMode;

enum class BoundingBoxFormat : int32_t { kCORNER_PAIRS = 0, kCENTER_SIZES = 1 };
enum class TensorLocation : int32_t { kDEVICE = 0, kHOST = 1 };
enum class TensorIOMode : int32_t { kNONE = 0, kINPUT = 1, kOUTPUT = 2 };

enum class LayerType : int32_t {
    kCONVOLUTION = 0,
    kCAST = 1,
    kACTIVATION = 2,
    kPOOLING = 3,
    kLRN = 4,
    kSCALE = 5,
    kSOFTMAX = 6,
    kDECONVOLUTION = 7,
    kCONCATENATION = 8,
    kELEMENTWISE = 9,
    kPLUGIN = 10,
    kUNARY = 11,
    kPADDING = 12,
    kSHUFFLE = 13,
    kREDUCE = 14,
    kTOPK = 15,
    kGATHER = 16,
    kMATRIX_MULTIPLY = 17,
    kRAGGED_SOFTMAX = 18,
    kCONSTANT = 19,
    kIDENTITY = 20,
    kPLUGIN_V2 = 21,
    kSLICE = 22,
    kSHAPE = 23,
    kPARAMETRIC_RELU = 24,
    kRESIZE = 25,
    kTRIP_LIMIT = 26,
    kRECURRENCE = 27,
    kITERATOR = 28,
    kLOOP_OUTPUT = 29,
    kSELECT = 30,
    kFILL = 31,
    kQUANTIZE = 32,
    kDEQUANTIZE = 33,
    kCONDITION = 34,
    kCONDITIONAL_INPUT = 35,
    kCONDITIONAL_OUTPUT = 36,
    kSCATTER = 37,
    kEINSUM = 38,
    kASSERTION = 39,
    kONE_HOT = 40,
    kNON_ZERO = 41,
    kGRID_SAMPLE = 42,
    kNMS = 43,
    kREVERSE_SEQUENCE = 44,
    kNORMALIZATION = 45,
    kPLUGIN_V3 = 46,
    kFULLY_CONNECTED = 47,
    kSQUEEZE = 48,
    kUNSQUEEZE = 49,
    kCUMULATIVE = 50,
    kDYNAMIC_QUANTIZE = 51,
    kATTENTION_INPUT = 52,
    kATTENTION_OUTPUT = 53,
    kROTARY_EMBEDDING = 54,
    kKV_CACHE_UPDATE = 55,
    kMOE = 56,
    kDIST_COLLECTIVE = 57
};

}  // namespace nvinfer1

namespace headrace {
inline namespace HEADRACE_GENERATION {
HEADRACE_ENUM(ActivationType);
HEADRACE_ENUM(PoolingType);
HEADRACE_ENUM(PaddingMode);
HEADRACE_ENUM(ElementWiseOperation);
HEADRACE_ENUM(UnaryOperation);
HEADRACE_ENUM(ReduceOperation);
HEADRACE_ENUM(ScaleMode);
HEADRACE_ENUM(MatrixOperation);
HEADRACE_ENUM(TopKOperation);
HEADRACE_ENUM(CumulativeOperation);
HEADRACE_ENUM(AttentionNormalizationOp);
HEADRACE_ENUM(CausalMaskKind);
HEADRACE_ENUM(AttentionIOForm);
HEADRACE_ENUM(KVCacheMode);
HEADRACE_ENUM(GatherMode);
HEADRACE_ENUM(ScatterMode);
HEADRACE_ENUM(FillOperation);
HEADRACE_ENUM(InterpolationMode);
HEADRACE_ENUM(ResizeCoordinateTransformation);
HEADRACE_ENUM(ResizeSelector);
HEADRACE_ENUM(ResizeRoundMode);
HEADRACE_ENUM(SampleMode);
HEADRACE_ENUM(BoundingBoxFormat);
HEADRACE_ENUM(TensorLocation);
HEADRACE_ENUM(WeightsRole);
HEADRACE_ENUM(TripLimit);
HEADRACE_ENUM(LoopOutput);
}  // namespace HEADRACE_GENERATION
}  // namespace headrace

#endif  // HEADRACE_TRT_LAYER_ENUMS_H
