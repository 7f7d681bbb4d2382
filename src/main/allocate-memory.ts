import type { Config } from '../../config/read.js'
import { meterBytes } from '../actor/meter.js'
import { meterTable } from '../actor/meter-table.js'
import { SampleRings } from '../actor/sample-rings.js'
import { Following, Readiness, Tip } from '../actor/shared.js'
import { generationBytes } from '../catalog/generations.js'
import { BlockFilter } from '../moderation/block-filter.js'
import { progressBytes } from '../source/reading/progress-table.js'
import { PeerWeights } from '../source/upstream/peer-weights.js'
import { soundBytes } from '../store/sound-files.js'
import { folders } from '../threads/folders.js'
import type { Descriptors } from '../threads/resources.js'
import type { SharedMemory } from '../threads/shared-memory.js'
import { PendingMarks } from '../upload/records/pending-marks.js'
import { diskShares } from './disk-shares.js'
import { sharedSegments } from './segments.js'

/** Allocates what all threads of the program share. */
export function sharedMemory(config: Config, descriptors?: Descriptors): SharedMemory {
  const { server, retrieval, peers, queries } = config
  const disk = diskShares(folders(config).root)
  const segments = sharedSegments(config, disk)
  return {
    disk,
    ...(descriptors === undefined ? {} : { descriptors }),
    ...(segments === undefined ? {} : { segments }),
    generations: new SharedArrayBuffer(generationBytes),
    sound: new SharedArrayBuffer(soundBytes()),
    // A transfer and a window transfer of the same payload may be open at once.
    progress: new SharedArrayBuffer(progressBytes(retrieval.fetchesMax * 2)),
    // Row 0 is the fetcher's; after the edge threads' come those of the index, of the swarm, of the two services, of the cluster,
    // of the writer into ClickHouse, and of queries.
    meters: new SharedArrayBuffer(meterBytes(meterTable, server.edgeThreads + 7 + queries.threads)),
    rows: {
      source: 0,
      ingest: server.edgeThreads + 1,
      swarm: server.edgeThreads + 2,
      payment: server.edgeThreads + 3,
      upload: server.edgeThreads + 4,
      cluster: server.edgeThreads + 5,
      push: server.edgeThreads + 6,
      queries: server.edgeThreads + 7,
    },
    tip: new Tip().memory,
    following: new Following().memory,
    readiness: new Readiness().memory,
    filter: new SharedArrayBuffer(BlockFilter.bytes),
    resources: new SharedArrayBuffer(SampleRings.bytesFor(server.edgeThreads)),
    limited: new SharedArrayBuffer(SampleRings.bytesFor(server.edgeThreads)),
    pendingItems: new SharedArrayBuffer(PendingMarks.bytes),
    peerWeights: new SharedArrayBuffer(PeerWeights.bytesFor(peers.urls?.length ?? 0)),
  }
}
