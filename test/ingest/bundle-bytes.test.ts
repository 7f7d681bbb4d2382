import { randomBytes } from 'node:crypto'
import t from 'tap'
import { isRefusal, type Refusal, refuse } from '../../src/format/refusal.js'
import { type BundleBytesParts, type BundleLook, bundleBytes } from '../../src/ingest/bundle-bytes.js'
import { bringsFirst, missingByte } from '../../src/ingest/bundle-probe.js'
import type { RootBytes } from '../../src/source/roots/root-bytes.js'
import { someId } from '../source/rig.js'

const never = new AbortController().signal
const firstLook: BundleLook = { bringsFirst: false, broke: () => undefined }

/** Opens `data`, which breaks once at each of these offsets, with these words. */
function opening(
  data: Buffer,
  breaks: Map<number, Refusal>,
): { open: ReturnType<typeof bundleBytes>; starts: number[] } {
  const starts: number[] = []
  const root: Omit<RootBytes, 'id'> = {
    sizeBytes: data.length,
    proven: true,
    trusted: true,
    async *stream(start, end) {
      starts.push(start)
      for (let at = start; at < end; at += 10) {
        const broken = breaks.get(at)
        breaks.delete(at)
        if (broken !== undefined) {
          yield broken
          return
        }
        yield data.subarray(at, Math.min(at + 10, end))
      }
    },
    async close() {
      starts.push(-1)
    },
  }
  const parts = {
    catalog: { attributes: () => undefined },
    transactions: { forget: () => undefined },
    openRoot: async (id: string) => ({ ...root, id }),
  }
  return { open: bundleBytes(parts as unknown as BundleBytesParts), starts }
}

async function read(open: ReturnType<typeof bundleBytes>): Promise<{ bytes: Buffer; last: string }> {
  const found = await open(someId(), firstLook, never)
  if (isRefusal(found)) throw new Error(found.message)
  const pieces: Uint8Array[] = []
  for await (const piece of found.bytes) {
    if (isRefusal(piece)) return { bytes: Buffer.concat(pieces), last: piece.refused }
    pieces.push(Buffer.from(piece))
  }
  return { bytes: Buffer.concat(pieces), last: 'end' }
}

t.test('a bundle is resumed at the byte where a node broke off', async (t) => {
  const data = randomBytes(95)
  const late = refuse('late', 'upstream', 'slow')
  const { open, starts } = opening(
    data,
    new Map([
      [0, late],
      [50, late],
    ]),
  )
  t.same(await read(open), { bytes: data, last: 'end' })
  t.same(starts, [0, 0, 50, -1])
})

t.test('bytes that cannot be proven are not fetched again', async (t) => {
  const data = randomBytes(95)
  const { open, starts } = opening(data, new Map([[50, refuse('forged', 'upstream', 'wrong')]]))
  t.same(await read(open), { bytes: data.subarray(0, 50), last: 'forged' })
  t.same(starts, [0, -1])
})

/** Opens a bundle of which nodes have these bytes; with the steps that were taken, and the byte that was missing. */
async function looked(bringsFirst: boolean, has: (at: number) => boolean) {
  const steps: string[] = []
  let missing: number | undefined
  const parts = {
    catalog: { attributes: () => undefined },
    transactions: { forget: () => steps.push('forget') },
    kept: { bring: async () => void steps.push('bring') },
    openRoot: async () => {
      steps.push('open')
      return {
        sizeBytes: 2_000_000,
        async *stream(at: number, end: number) {
          steps.push(end === at + 1 ? `probe ${at}` : 'read')
          yield has(at) ? Buffer.alloc(end - at) : refuse('unknown', 'upstream', 'missing')
        },
        close: async () => void steps.push('close'),
      }
    },
  }
  const look: BundleLook = { bringsFirst, broke: (at) => (missing = at) }
  const open = bundleBytes(parts as unknown as BundleBytesParts)
  const found = await open(someId(), look, never)
  if (!isRefusal(found)) for await (const _ of found.bytes);
  return { steps, missing, isRefused: isRefusal(found) }
}

t.test('a bundle is located once for a look, and closed in any case', async (t) => {
  const probes = ['probe 1999999', 'probe 0']
  t.same(await looked(false, () => true), {
    steps: ['forget', 'open', ...probes, 'bring', 'read', 'close'],
    missing: undefined,
    isRefused: false,
  })
  t.same(await looked(true, () => true), {
    steps: ['forget', 'bring', 'open', ...probes, 'read', 'close'],
    missing: undefined,
    isRefused: false,
  })
  t.same(await looked(false, (at) => at > 0), {
    steps: ['forget', 'open', ...probes, 'close'],
    missing: 0,
    isRefused: true,
  })
})

t.test('other sources get a request for a bundle before a chunk of it is missed', async (t) => {
  const { steps, missing } = await looked(true, () => false)
  t.same(steps, ['forget', 'bring', 'open', 'probe 1999999', 'close'], 'and nothing is read')
  t.equal(missing, 1_999_999)
  const looks = Array.from({ length: 32 }, (_, attempts) => attempts)
  t.same(looks.filter(bringsFirst), [1, 3, 5, 7, 15, 23, 31])
})

t.test('a chunk is missing only where nodes state so', async (t) => {
  const probed = (piece: Refusal) =>
    missingByte(
      {
        sizeBytes: 2_000_000,
        async *stream() {
          yield piece
        },
      },
      undefined,
      never,
    )
  const unknown = refuse('unknown', 'upstream', 'missing')
  t.same(await probed(unknown), { at: 1_999_999, refusal: unknown })
  for (const reason of ['late', 'busy', 'upstream'] as const)
    t.equal(await probed(refuse(reason, 'upstream', 'no answer')), undefined)
})
