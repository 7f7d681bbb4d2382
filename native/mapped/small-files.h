// Calls of JavaScript for files that are read now and then.
#pragma once

#include <node_api.h>

namespace small_files {

// `facts`: 24 bytes for the facts of the file: inode (uint64), time of its last change in ns (int64), size (double).

// readSmall(path, target, facts) -> how many bytes the file has, which then are in `target`; -1 where there is none, -2 where
// not all of them are in memory (or the file system cannot say), -3 where `target` is too small. `facts` are filled in, but
// where there is none. For files that are requested now and then: mapping and unmapping one costs ten times as much.
napi_value readSmall(napi_env env, napi_callback_info info);

// openSmall(path, facts) -> a descriptor for `readOpen`, which `closeSmall` closes; -1 where there is no such file.
napi_value openSmall(napi_env env, napi_callback_info info);

// closeSmall(descriptor)
napi_value closeSmall(napi_env env, napi_callback_info info);

// readOpen(descriptor, target, sizeBytes) -> as `readSmall`, of a file of this size that is open.
napi_value readOpen(napi_env env, napi_callback_info info);

// look(path, facts) -> true where there is such a file.
napi_value look(napi_env env, napi_callback_info info);

}  // namespace small_files
