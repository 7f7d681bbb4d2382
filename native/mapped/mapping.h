// Files mapped into memory, shared by every thread of the process.
//
// A Mapping covers one whole file. It is counted: one count for each open Handle, for each ArrayBuffer handed to
// JavaScript, and for each fetch under way in the pool. The last one to leave unmaps. Two threads that open the same
// file get the same Mapping, so its page tables are filled once.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "../file-places.h"

namespace mapping {

// Linux takes no longer path.
constexpr size_t kPathMax = 4096;

using Key = std::tuple<dev_t, ino_t, off_t, int64_t>;

struct Mapping {
  Key key;
  uint8_t* start;
  size_t size;
  size_t holders;
  // Less than 0: it was closed once the file was mapped.
  int fd;
};

// Time of the last change, in nanoseconds since 1970.
int64_t modifiedNs(const struct stat& found);

// The mapping of an open file, made on first need; null with errno set where mmap fails. Takes the descriptor over. `kWritten`:
// the file is being written to, so its time says nothing about whether it is the same one. `kScattered`: small places far apart
// are read, so a read of the disk brings what is wanted, and nothing around it. Who first maps a file decides that.
enum class Use { kWhole, kWritten, kScattered };
Mapping* of(int fd, const struct stat& found, Use use);

// From here on the kernel reads ahead in this mapping, for whoever reads it.
void readThrough(const Mapping* mapping);

void hold(Mapping* mapping);
void release(Mapping* mapping);

// Whole pages around bytes of a mapping.
struct Range {
  uint8_t* start;
  size_t length;
};

// `start` to `end`: within the mapping.
Range pagesAround(const Mapping* mapping, size_t start, size_t end);

// Brings every page in and fills the page tables. `isHere`: all of them are in memory already. 0, or the number of the error.
int populate(const Range& range, bool isHere);

// Whether bytes that somebody holds lie in a file that is kept open, and where.
bool findPlace(const uint8_t* start, size_t length, file_places::Place* place);

// So many of the mapped files stay open, in the whole process; those that are open already do.
void keepOpen(size_t max);

// What this process holds.
struct Held {
  size_t mappings;
  size_t bytes;
};
Held held();

}  // namespace mapping
