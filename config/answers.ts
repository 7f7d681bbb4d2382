import { availableParallelism, totalmem } from 'node:os'
import { flag, list, whole } from './setting.js'

const age = { min: 0, max: 10 ** 9 }

/**
 * Bytes of each thread for the response cache, of as many threads as there are processors: a thirty-second part of the
 * memory for all of them, or 64 MiB each where that is more. With more contents in demand than fit, each further request for
 * one of them takes the steps in JavaScript. But whoever asks for enough contents fills the tables: an eighth of the memory is
 * the most, also in a small container on a machine with many processors.
 */
export function responseCacheBytes(memoryBytes: number, threads: number): number {
  return Math.floor(Math.max(memoryBytes / 32, Math.min(threads * 2 ** 26, memoryBytes / 8)) / threads)
}

/** What this machine has, or the container. */
function memoryHere(): number {
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

/** What answers say to caches, and how much of the metadata they carry. */
export const answers = {
  defaultMaxAge: whole({
    env: 'CACHE_DEFAULT_MAX_AGE',
    default: 30,
    ...age,
    why: 'Seconds, where no other rule is.',
  }),
  stableMaxAge: whole({
    env: 'CACHE_STABLE_MAX_AGE',
    default: 2_592_000,
    ...age,
    why: 'Seconds, final content.',
  }),
  trustedMaxAge: whole({
    env: 'CACHE_UNSTABLE_TRUSTED_MAX_AGE',
    default: 43_200,
    ...age,
    why: 'Seconds, content not final yet from a trusted source.',
  }),
  unstableMaxAge: whole({
    env: 'CACHE_UNSTABLE_MAX_AGE',
    default: 7200,
    ...age,
    why: 'Seconds, other content.',
  }),
  notFoundMaxAge: whole({
    env: 'CACHE_NOT_FOUND_MAX_AGE',
    default: 60,
    ...age,
    why: 'Seconds, unknown ids.',
  }),
  blockedMaxAge: whole({
    env: 'CACHE_BLOCKED_MAX_AGE',
    default: 2_592_000,
    ...age,
    why: 'Seconds, content and names that the operator blocked. Caches may go on so long after a release.',
  }),
  privateSizeThreshold: whole({
    env: 'CACHE_PRIVATE_SIZE_THRESHOLD',
    default: 104_857_600,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    why: 'Bytes; larger content is private to the client, so that shared caches are not flooded.',
  }),
  privateContentTypes: list({
    env: 'CACHE_PRIVATE_CONTENT_TYPES',
    default: [],
    shape: /^[\w.+*-]+\/[\w.+*-]+$/,
    allowed: 'content types such as video/*',
    why: 'Content of these types is private to the client.',
  }),
  tagHeaders: flag({
    env: 'ARWEAVE_TAG_RESPONSE_HEADERS_ENABLED',
    default: true,
    why: 'Sends owner, signature and tags of the item as headers.',
  }),
  tagHeadersMax: whole({
    env: 'ARWEAVE_TAG_RESPONSE_HEADERS_MAX',
    default: 100,
    min: 0,
    max: 1000,
    why: 'Tags sent as headers at most.',
  }),
  tagHeadersMaxBytes: whole({
    env: 'ARWEAVE_TAG_RESPONSE_HEADERS_MAX_BYTES',
    default: 8192,
    min: 0,
    max: 65_536,
    why: 'Bytes of metadata headers at most: front proxies refuse heads over 8 to 16 KiB.',
  }),
  preparedMaxBytes: whole({
    env: 'PREPARED_ANSWERS_MAX_BYTES',
    default: 67_108_864,
    min: 1_048_576,
    max: 2 ** 36,
    why: 'Memory of each edge thread for heads of answers that are ready to be sent, 2 to 10 KiB for each content.',
  }),
  responseCacheMaxBytes: whole({
    env: 'REPEATED_ANSWERS_MAX_BYTES',
    default: responseCacheBytes(memoryHere(), availableParallelism()),
    min: 0,
    max: 2 ** 36,
    why:
      'Memory of each edge thread for its response cache: answers, 0.4 KiB or more each; 0: none. ' +
      'With TLS_PORT the listeners of HTTP and HTTPS have half of it each.',
  }),
  digestBufferMaxBytes: whole({
    env: 'HTTPSIG_BODY_DIGEST_BUFFER_MAX_BYTES',
    default: 2_097_152,
    min: 0,
    max: 67_108_864,
    why: 'Uncached bodies up to this size are hashed before they are sent, so that they carry a digest.',
  }),
}
