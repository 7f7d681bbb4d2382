#include "mapping.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>
#include <map>
#include <mutex>

#include "../bus.h"
#include "../resident.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace mapping {

namespace {

// Used instead of the modification time of a file that is being written to; no file has this time.
constexpr int64_t kWritten = INT64_MIN;

std::mutex guard;
std::map<Key, Mapping*> mappings;
// Those whose file is kept open, by their first byte.
std::map<const uint8_t*, Mapping*> opened;
// So many files are kept open at most.
size_t openedMax = 256;

}  // namespace

int64_t modifiedNs(const struct stat& found) {
  return static_cast<int64_t>(found.st_mtim.tv_sec) * 1000000000 + found.st_mtim.tv_nsec;
}

Mapping* of(int fd, const struct stat& found, Use use) {
  bool written = use == Use::kWritten;
  Key key{found.st_dev, found.st_ino, found.st_size, written ? kWritten : modifiedNs(found)};
  std::lock_guard<std::mutex> lock(guard);
  auto known = mappings.find(key);
  if (known != mappings.end()) {
    known->second->holders += 1;
    ::close(fd);
    return known->second;
  }
  size_t size = static_cast<size_t>(found.st_size);
  void* start = nullptr;
  if (size > 0) {
    start = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (start == MAP_FAILED) {
      int code = errno;
      ::close(fd);
      errno = code;
      return nullptr;
    }
    // File systems that support it then read and map two MiB at a time. Not where the file has many small contents: whoever wants one
    // of them would read two MiB, and where memory is less than what is on the disk, these push out hundreds of others.
    if (use == Use::kScattered) madvise(start, size, MADV_RANDOM);
    else if (!written) madvise(start, size, MADV_HUGEPAGE);
  }
  bool isKept = size > 0 && opened.size() < openedMax;
  if (!isKept) ::close(fd);
  Mapping* made = new Mapping{key, static_cast<uint8_t*>(start), size, 1, isKept ? fd : -1};
  mappings.emplace(key, made);
  if (isKept) opened.emplace(made->start, made);
  return made;
}

void readThrough(const Mapping* mapping) {
  if (mapping->size > 0) madvise(mapping->start, mapping->size, MADV_NORMAL);
}

void hold(Mapping* mapping) {
  std::lock_guard<std::mutex> lock(guard);
  mapping->holders += 1;
}

void release(Mapping* mapping) {
  {
    std::lock_guard<std::mutex> lock(guard);
    if (--mapping->holders > 0) return;
    mappings.erase(mapping->key);
    if (mapping->fd >= 0) opened.erase(mapping->start);
  }
  // Nobody finds it any more, and others need not wait for this.
  if (mapping->size > 0) munmap(mapping->start, mapping->size);
  if (mapping->fd >= 0) ::close(mapping->fd);
  delete mapping;
}

Range pagesAround(const Mapping* mapping, size_t start, size_t end) {
  if (start == end) return {mapping->start, 0};
  size_t first = start / resident::pageSize() * resident::pageSize();
  return {mapping->start + first, end - first};
}

int populate(const Range& range, bool isHere) {
  if (range.length == 0) return 0;
  // Begins to read these pages alone and in one go; page by page the kernel would read 128 KiB around the first of them.
  if (!isHere) resident::bringIn(range.start, range.length);
  if (madvise(range.start, range.length, MADV_POPULATE_READ) == 0) return 0;
  if (errno != EINVAL) return errno;
  // Kernels before 5.14 know no MADV_POPULATE_READ: touch the pages.
  for (size_t at = 0; at < range.length; at += resident::pageSize()) {
    char byte;
    if (!bus::copied(&byte, range.start + at, 1)) return EFAULT;
  }
  return 0;
}

bool findPlace(const uint8_t* start, size_t length, file_places::Place* place) {
  std::lock_guard<std::mutex> lock(guard);
  auto after = opened.upper_bound(start);
  if (after == opened.begin()) return false;
  const Mapping* mapping = std::prev(after)->second;
  size_t offset = static_cast<size_t>(start - mapping->start);
  if (offset > mapping->size || length > mapping->size - offset) return false;
  *place = {mapping->fd, static_cast<off_t>(offset)};
  return true;
}

void keepOpen(size_t max) {
  std::lock_guard<std::mutex> lock(guard);
  openedMax = max;
}

Held held() {
  std::lock_guard<std::mutex> lock(guard);
  Held all = {mappings.size(), 0};
  for (const auto& each : mappings) all.bytes += each.second->size;
  return all;
}

}  // namespace mapping
