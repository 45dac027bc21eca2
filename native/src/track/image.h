// The pixels of a frame as a visual tracker reads them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "preprocess/pass.h"
#include "track/motion.h"

namespace headrace::track {

// Patches of an image, each brought to a square of samples by taking the pixel under each; what
// lies outside of the image has the values of its border.
class Image {
public:
    // Size in pixels, and of what boxes are in; 0 where that is the same.
    Image(std::array<int, 2> size, std::array<int, 2> of_boxes);
    virtual ~Image() = default;

    // Turns to regions: `patch` gives them from now on. Who asks looks at the first `rows` rows of
    // samples alone.
    void turn(const std::vector<Placement> &regions, int samples, int rows);

    // (3, samples, samples) bytes of a region: red, green, blue. Valid until the next call. What
    // stands behind the rows asked for does not matter.
    virtual const std::uint8_t *patch(std::size_t region) = 0;

protected:
    virtual void fetch() {}

    std::size_t samples_ = 0, rows_ = 0;
    std::vector<std::int32_t> across_, down_;  // (regions, samples) columns and rows

private:
    std::array<int, 2> size_;
    std::array<double, 2> scale_;  // pixels of the image for one that boxes are in
};

// An image in main memory.
class HostImage : public Image {
public:
    HostImage(preprocess::Layout layout, std::array<preprocess::PlaneView, 3> planes,
              const preprocess::ColorMatrix &matrix, std::array<int, 2> size,
              std::array<int, 2> of_boxes);
    const std::uint8_t *patch(std::size_t region) override;

private:
    void expect(std::size_t region) const;

    preprocess::Layout layout_;
    std::array<preprocess::PlaneView, 3> planes_;
    preprocess::ColorMatrix matrix_;
    std::vector<std::uint8_t> rgb_;
};

}  // namespace headrace::track
