/** Clients whose clock is off by days: what needs no common time works, and nothing is paid that could not be settled. */
import { join } from 'node:path'
import t from 'tap'
import { SluiceClient } from '../../src/client/client.js'
import { ProvingFetcher } from '../../src/client/fetch/index.js'
import { uploadFolder } from '../../src/client/folder.js'
import { sourceOfBytes } from '../../src/client/payload.js'
import { memoryStore } from '../../src/client/resume-store.js'
import { signerOfEthereum } from '../../src/client/signer.js'
import { run } from '../flow/running.js'
import { codeOf, info, receiptOf, serving } from './rig.js'

const day = 86_400_000
const trueNow = Date.now
const signer = await signerOfEthereum('0a'.repeat(32))

/** Does something while this process is so much ahead. The services are other processes, or tell the true time. */
async function ahead<Result>(byMs: number, work: () => Promise<Result>): Promise<Result> {
  Date.now = () => trueNow() + byMs
  try {
    return await work()
  } finally {
    Date.now = trueNow
  }
}

t.test('signed requests, receipts, folders and proofs hold by any clock', async (t) => {
  const { urls } = await run(t, join(t.testdir(), 'data'), { DEVNET_SEED: 'false' })
  const { upload: uploadUrl = '', payment: paymentUrl = '', gateway = '' } = urls
  const client = new SluiceClient({ uploadUrl, paymentUrl, gatewayUrls: [gateway], signer })
  for (const byMs of [5 * day, -5 * day]) {
    await ahead(byMs, async () => {
      t.match(await client.getBalance(), { winc: '0' })
      t.match(await client.getPaymentHistory(), { payments: [] })
      const { id } = await client.upload({ data: `by a clock that is ${byMs} ms ahead` })
      const response = await new ProvingFetcher({ gatewayUrls: [gateway] }).fetch(id)
      t.equal(response.headers.get('x-verified'), 'owner')
      t.match(response.headers.get('x-verified-signer'), /^ed25519:/)
      const files = [{ path: 'index.html', source: sourceOfBytes(Buffer.from(`page ${byMs}`)) }]
      t.equal((await uploadFolder(client, { files })).folderIndexSummary.uploadedFiles, 1)
    })
  }
})

const offer = {
  scheme: 'exact',
  network: 'base',
  maxAmountRequired: '2000',
  resource: 'http://x/',
  maxTimeoutSeconds: 300,
  description: '',
  mimeType: '',
  payTo: `0x${'22'.repeat(20)}`,
  extra: {},
  asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
}
const fundingMode = { mode: 'x402', maxMUSDCAmount: 2000n } as const

t.test('what could not be settled is not signed, and a payment outlives a clock that jumps', async (t) => {
  const payments = new Set<string>()
  let cuts = 0
  const service = await serving(t, ({ path, headers, body }) => {
    if (path === '/v1/info') return info
    const payment = headers['x-payment']
    if (typeof payment !== 'string')
      return { status: 402, json: { x402Version: 1, accepts: [offer], error: 'pay' } }
    payments.add(payment)
    return cuts-- > 0 ? { cut: true } : { json: receiptOf(body, '0') }
  })
  const retry = { tries: 1, delayMs: 1 }
  const places = { uploadUrl: service.url, paymentUrl: service.url, signer, retry, resume: memoryStore() }
  const upload = (data: string): PromiseLike<unknown> =>
    new SluiceClient(places).upload({ data, fundingMode })
  for (const byMs of [3 * day, -3 * day]) t.equal(await ahead(byMs, () => codeOf(upload('x'))), 'wrong-clock')
  t.equal(payments.size, 0)
  cuts = 1
  t.equal(await codeOf(upload('x')), 'payment-uncertain')
  // By this clock the payment is over long since; by that of the service it can still be settled.
  t.equal(await ahead(3 * day, () => codeOf(upload('x'))), 'no failure')
  t.equal(payments.size, 1, 'one authorization, so one settlement at most')
})
