/** Options out of their bounds are refused before anything is sent: none hangs, and none is quietly another one. */
import t from 'tap'
import { SluiceClient, type UploadOptions } from '../../src/client/client.js'
import { ClientError } from '../../src/client/errors.js'
import { signerOfEthereum } from '../../src/client/signer.js'
import { info, receiptOf, serving } from './rig.js'

const fiveMiB = 5 * 2 ** 20
const sendTokens = async (): Promise<string> => 'a transaction'

const wrong: Readonly<Record<string, object>> = {
  'a part below 5 MiB': { chunkByteCount: fiveMiB - 1 },
  'a part above 500 MiB': { chunkByteCount: 100 * fiveMiB + 1 },
  'a part of no number': { chunkByteCount: Number.NaN },
  'half a byte': { chunkByteCount: fiveMiB + 0.5 },
  'no requests at once': { maxChunkConcurrency: 0 },
  'less than none': { maxChunkConcurrency: -1 },
  'a concurrency of no number': { maxChunkConcurrency: Number.NaN },
  'without end': { maxChunkConcurrency: Number.POSITIVE_INFINITY },
  'an unknown mode': { chunkingMode: 'sometimes' },
  'a time of no number': { maxFinalizeMs: Number.NaN },
  'a time before now': { maxFinalizeMs: -1 },
  'a buffer below the price': { fundingMode: { mode: 'on-demand', sendTokens, topUpBufferMultiplier: 0.9 } },
  'a buffer of no number': {
    fundingMode: { mode: 'on-demand', sendTokens, topUpBufferMultiplier: Number.NaN },
  },
}

const right: Readonly<Record<string, object>> = {
  nothing: {},
  'the smallest part': { chunkByteCount: fiveMiB },
  'the largest part': { chunkByteCount: 100 * fiveMiB, chunkingMode: 'disabled' },
  'one request at once': { maxChunkConcurrency: 1, maxFinalizeMs: 0 },
}

t.test('options of an upload', async (t) => {
  const service = await serving(t, ({ path, body }) =>
    path === '/v1/info' ? info : { json: receiptOf(body) },
  )
  const signer = await signerOfEthereum('02'.repeat(32))
  const client = new SluiceClient({ uploadUrl: service.url, paymentUrl: service.url, signer })
  const upload = async (options: object): Promise<unknown> =>
    client.upload({ data: 'x', ...(options as UploadOptions) })
  for (const [title, options] of Object.entries(wrong)) {
    const failure = await upload(options).catch((error: unknown) => error)
    t.ok(failure instanceof ClientError && failure.code === 'invalid-input', `${title}: ${String(failure)}`)
  }
  t.strictSame(service.requests, [], 'nothing was asked')
  for (const [title, options] of Object.entries(right)) await t.resolves(upload(options), title)
})

t.test('a fee of a top-up', async (t) => {
  const service = await serving(t, () => undefined)
  const client = new SluiceClient({ uploadUrl: service.url, paymentUrl: service.url })
  for (const feeMultiplier of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    const work = client.topUpWithTokens({ tokenAmount: 1n, sendTokens, feeMultiplier })
    await t.rejects(work, { code: 'invalid-input' }, String(feeMultiplier))
  }
  t.strictSame(service.requests, [])
})
