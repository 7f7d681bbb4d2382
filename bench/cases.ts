import type { SizeName } from './objects.js'

/** One way of asking, with what is wanted of it and what the public peer reached, both as ratios to nginx per CPU second. */
export interface Case {
  readonly name: string
  /** A size, or the largest file of a band. */
  readonly object: SizeName | 'band'
  readonly method: 'GET' | 'HEAD'
  readonly rangeBytes?: number
  /** Sends the ETag back. */
  readonly conditional?: true
  /** Ratio to nginx with sendfile that this program wants to reach. */
  readonly wanted: number
  /** Also measured with two threads. */
  readonly paired?: true
  /** Ratio that the peer gateway showed in trials on a machine with two cores. */
  readonly peer?: number
}

export const cases: readonly Case[] = [
  // First: a gateway whose index is empty soon withdraws the band that was put on its shelf.
  { name: '1 KiB of a band', object: 'band', method: 'GET', rangeBytes: 2 ** 10, wanted: 1.2 },
  { name: '64 KiB of a band', object: 'band', method: 'GET', rangeBytes: 2 ** 16, wanted: 1 },
  { name: '1 MiB of a band', object: 'band', method: 'GET', rangeBytes: 2 ** 20, wanted: 0.95 },
  { name: '1 KiB', object: '1k', method: 'GET', wanted: 1.2, peer: 0.013, paired: true },
  { name: '64 KiB', object: '64k', method: 'GET', wanted: 1.1, paired: true },
  { name: '1 MiB', object: '1m', method: 'GET', wanted: 1.15, peer: 0.064, paired: true },
  { name: '304', object: '1k', method: 'GET', conditional: true, wanted: 0.9 },
  { name: 'HEAD', object: '1k', method: 'HEAD', wanted: 0.9 },
  { name: '100 MiB', object: '100m', method: 'GET', wanted: 1.1, peer: 0.3 },
  { name: '1 GiB', object: '1g', method: 'GET', wanted: 0.9 },
  {
    name: '64 KiB of 1 GiB',
    object: '1g',
    method: 'GET',
    rangeBytes: 2 ** 16,
    wanted: 1,
    peer: 0.018,
    paired: true,
  },
  { name: '1 MiB of 1 GiB', object: '1g', method: 'GET', rangeBytes: 2 ** 20, wanted: 0.95 },
]
