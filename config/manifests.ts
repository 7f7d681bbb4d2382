import { whole } from './setting.js'

/** What is resolved of path manifests, and how much of it is kept. */
export const manifests = {
  maxBytes: whole({
    env: 'MANIFEST_MAX_BYTES',
    default: 16_777_216,
    min: 1024,
    max: 134_217_728,
    why: 'Larger manifests are answered 413 below their id; /raw serves them all the same.',
  }),
  pathsMax: whole({
    env: 'MANIFEST_MAX_PATHS',
    default: 300_000,
    min: 1,
    max: 2_000_000,
    why: 'Manifests with more paths are answered 413. A thread of the pool holds all of one in memory while it reads it.',
  }),
  pathMaxBytes: whole({
    env: 'MANIFEST_MAX_PATH_BYTES',
    default: 8192,
    min: 64,
    max: 65_536,
    why: 'Manifests with a longer path are answered 413. No request that comes in could name it.',
  }),
  cacheMaxBytes: whole({
    env: 'MANIFEST_CACHE_MAX_BYTES',
    default: 2 ** 30,
    min: 2 ** 20,
    max: Number.MAX_SAFE_INTEGER,
    why: 'Bytes of manifests in the form in which paths are looked up (DATA_PATH/manifests): about 50 a path, 4,096 at least.',
  }),
  waitingMax: whole({
    env: 'MANIFEST_QUEUE_MAX',
    default: 64,
    min: 1,
    max: 4096,
    why: 'Manifests that are read, or wait for it, at once, an eighth for one client on each edge thread; one more is 503.',
  }),
}
