/* The version of DeepStream that the headers stand for. Part of headrace, Apache-2.0. */
#ifndef HEADRACE_NVDS_VERSION_H
#define HEADRACE_NVDS_VERSION_H

#define NVDS_VERSION_MAJOR 9
#define NVDS_VERSION_MINOR 1
#define NVDS_VERSION_MICRO 0

#ifdef __cplusplus
extern "C" {
#endif

void nvds_version(unsigned int *major, unsigned int *minor);
void nvds_version_print(void);
void nvds_dependencies_version_print(void);

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_NVDS_VERSION_H */
