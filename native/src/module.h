#pragma once
#include <nanobind/nanobind.h>

void bind_preprocess(nanobind::module_ &m);      // preprocess.cpp
void bind_preprocess_tables(nanobind::module_ &m);  // preprocess_tables.cpp
void bind_cluster(nanobind::module_ &m);         // cluster.cpp
void bind_decode(nanobind::module_ &m);          // decode.cpp
void bind_decode_boxes(nanobind::module_ &m);    // decode_boxes.cpp
void bind_call_lock(nanobind::module_ &m);       // call_lock.cpp
void bind_custom_library(nanobind::module_ &m);  // custom_library.cpp
void bind_stand_in(nanobind::module_ &m);        // stand_in.cpp
void bind_segment(nanobind::module_ &m);         // segment.cpp
void bind_track(nanobind::module_ &m);           // track.cpp
void bind_track_iou(nanobind::module_ &m);       // track_iou.cpp
void bind_track_found(nanobind::module_ &m);     // track_found.cpp
void bind_count_pairs(nanobind::module_ &m);     // count_pairs.cpp
void bind_json_numbers(nanobind::module_ &m);    // json_numbers.cpp
void bind_draw_blend(nanobind::module_ &m);      // draw_blend.cpp
void bind_plugin_nms(nanobind::module_ &m);      // plugin_nms.cpp
void bind_plugin_sample(nanobind::module_ &m);   // plugin_sample.cpp
void bind_ort_operators(nanobind::module_ &m);   // ort_operators.cpp
void bind_loaded_library(nanobind::module_ &m);  // loaded_library.cpp
void bind_memory_view(nanobind::module_ &m);     // memory_view.cpp
void bind_guard(nanobind::module_ &m);           // guard.cpp
void bind_guard_crash(nanobind::module_ &m);     // guard_crash.cpp
void bind_guard_memory(nanobind::module_ &m);    // guard_memory.cpp
void bind_guard_sandbox(nanobind::module_ &m);   // guard_sandbox.cpp
void bind_crash_note(nanobind::module_ &m);      // crash_note.cpp
void bind_host(nanobind::module_ &m);            // host/host_foreign.cpp
