// Intersection over union of rectangles that are turned about their middles.
#pragma once

namespace headrace::cluster {

// `a`, `b`: left, top, width, height before they are turned; angles in radians, clockwise as y
// points down. NaN if a number is not finite, 0 if neither has an area.
double rotated_iou(const float *a, double angle_a, const float *b, double angle_b);

}  // namespace headrace::cluster
