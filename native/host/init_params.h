// The configuration as engine creators and model parsers read it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nvdsinfer_context.h"

namespace headrace::hosting {

// Classes of rows of pre- and post-cluster threshold, eps, least boxes, group threshold, least
// score, IoU threshold and top-k.
constexpr size_t kClassNumbers = 8;
std::vector<NvDsInferDetectionParams> class_params(const std::vector<double> &rows);

class InitParams {
public:
    InitParams();
    InitParams(const InitParams &) = delete;
    InitParams &operator=(const InitParams &) = delete;

    NvDsInferContextInitParams &struct_() { return params_; }
    // Throw std::invalid_argument for a field of another name, and for text that is too long.
    void set_text(const std::string &field, const std::string &value);
    void set_number(const std::string &field, double value);
    void set_list(const std::string &field, const std::vector<std::string> &values);
    void set_offsets(const std::vector<float> &values);
    void set_infer_dims(unsigned int channels, unsigned int height, unsigned int width);
    void set_classes(const std::vector<NvDsInferDetectionParams> &classes);

private:
    struct Strings {
        std::vector<std::string> texts;
        std::vector<char *> pointers;
    };

    NvDsInferContextInitParams params_;
    std::map<std::string, Strings> lists_;  // field -> what it points to
    std::vector<NvDsInferDetectionParams> classes_;
};

}  // namespace headrace::hosting
