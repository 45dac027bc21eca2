// Pools of metadata: elements are taken from and given back to lists of a batch.
#pragma once

#include "library.h"

namespace headrace::deepstream {

// Holds the batch's recursive lock.
class Locked {
public:
    explicit Locked(NvDsBatchMeta *batch) : batch_(batch) {
        if (batch_ != nullptr) nvds_acquire_meta_lock(batch_);
    }
    ~Locked() {
        if (batch_ != nullptr) nvds_release_meta_lock(batch_);
    }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;

private:
    NvDsBatchMeta *batch_;
};

// The pool of a kind in a batch.
template <typename T>
NvDsMetaPool *pool_of(NvDsBatchMeta *batch);

void *take(NvDsBatchMeta *batch, NvDsMetaPool *pool);
// Releases what an element holds, and puts it on the list of free ones.
void give_back(NvDsMetaPool *pool, void *element);

template <typename T>
T *take(NvDsBatchMeta *batch) {
    return static_cast<T *>(take(batch, pool_of<T>(batch)));
}

// Gives back all elements of a list of kind T and frees its nodes.
template <typename T>
void clear(NvDsBatchMeta *batch, GList **list) {
    GList *nodes = *list;
    *list = nullptr;
    for (GList *node = nodes; node != nullptr; node = node->next)
        give_back(pool_of<T>(batch), node->data);
    free_nodes(nodes);
}

}  // namespace headrace::deepstream
