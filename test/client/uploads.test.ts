import t from 'tap'
import { SluiceClient, type SluiceOptions } from '../../src/client/client.js'
import { ClientError } from '../../src/client/errors.js'
import type { PayloadSource } from '../../src/client/payload.js'
import { memoryStore } from '../../src/client/resume-store.js'
import type { ArweaveJwk } from '../../src/client/rsa.js'
import { signerOfArweave, signerOfEthereum } from '../../src/client/signer.js'
import { fixtureJson } from '../fixture-file.js'
import {
  type Counter,
  info,
  receiptFor,
  receiptOf,
  type ServedAnswer,
  type ServedRequest,
  serviceAddress,
  serving,
} from './rig.js'

const jwk = fixtureJson<ArweaveJwk>('rsa-4096.jwk.json')
const secret = '01'.repeat(32)
const retry = { tries: 3, delayMs: 1 }

async function clientOf(service: Counter, options: SluiceOptions = {}): Promise<SluiceClient> {
  const signer = await signerOfEthereum(secret)
  return new SluiceClient({ uploadUrl: service.url, paymentUrl: service.url, signer, retry, ...options })
}

/** Answers `/v1/info`, and posted items by `answer`. */
function uploads(
  t: Parameters<typeof serving>[0],
  answer: (request: ServedRequest) => ServedAnswer | undefined | Promise<ServedAnswer | undefined>,
): Promise<Counter> {
  return serving(t, (request) => (request.path === '/v1/info' ? info : answer(request)))
}

async function failure(work: PromiseLike<unknown>): Promise<ClientError> {
  try {
    await work
  } catch (error) {
    if (error instanceof ClientError) return error
    throw error
  }
  throw new Error('it did not fail')
}

t.test('an upload gives its receipt, tells its progress and says who pays', async (t) => {
  const heads: ServedRequest['headers'][] = []
  const service = await uploads(t, ({ headers, body }) => {
    heads.push(headers)
    return { json: receiptOf(body, '17') }
  })
  const client = await clientOf(service)
  const called: string[] = []
  const events = {
    onSigningSuccess: () => called.push('signed'),
    onUploadSuccess: () => called.push('uploaded'),
    onUploadProgress: ({ processedBytes, totalBytes }: { processedBytes: number; totalBytes: number }) =>
      called.push(`${processedBytes}/${totalBytes}`),
  }
  const task = client.upload({ data: 'hello', dataItemOpts: { paidBy: ['A', 'B'], tags: [] }, events })
  const kinds: string[] = []
  for await (const event of task) kinds.push(event.type)
  const receipt = await task
  t.equal(receipt.winc, '17')
  t.match(kinds, ['signing', 'signed', 'upload'])
  t.strictSame(called, ['signed', '0/155', '155/155', 'uploaded'])
  t.equal(heads[0]?.['x-paid-by'], 'A,B')
  t.equal(heads[0]?.['content-type'], 'application/octet-stream')
})

t.test('false answers of a service are detected', async (t) => {
  const other = receiptFor('A'.repeat(43), 'B'.repeat(43))
  const bend: Record<string, (receipt: Record<string, unknown>) => Record<string, unknown>> = {
    'another id': () => other,
    'a wrong signature': (receipt) => ({ ...receipt, timestamp: 5 }),
    'another owner': (receipt) => ({ ...receipt, owner: 'B'.repeat(43) }),
    'another key': (receipt) => ({ ...receipt, public: `A${String(receipt.public).slice(1)}` }),
  }
  for (const [what, wrong] of Object.entries(bend)) {
    const service = await uploads(t, ({ body }) => ({ json: wrong(receiptOf(body)) }))
    t.equal((await failure((await clientOf(service)).upload({ data: 'x' }))).code, 'untrue', what)
  }
  const html = await uploads(t, () => ({ text: '<html>', headers: { 'content-type': 'text/html' } }))
  t.equal((await failure((await clientOf(html)).upload({ data: 'x' }))).code, 'malformed-answer')
})

t.test('each refusal has its own code, and only temporary ones are retried', async (t) => {
  const offer = { x402Version: 1, accepts: [{ scheme: 'exact' }], error: 'pay' }
  const cases: [ServedAnswer, string, number][] = [
    [{ status: 402, text: 'Insufficient balance' }, 'insufficient-credits', 1],
    [{ status: 402, json: offer, headers: { 'x-free-tier-exhausted': 'true' } }, 'free-tier-exhausted', 1],
    [{ status: 402, json: { code: 'FREE_TIER_EXHAUSTED' } }, 'free-tier-exhausted', 1],
    [{ status: 402, json: offer }, 'payment-required', 1],
    [{ status: 413, text: 'too large' }, 'too-large', 1],
    [{ status: 403, text: 'Forbidden' }, 'forbidden', 1],
    [{ status: 400, text: 'Invalid Data Item!' }, 'rejected', 1],
    [{ status: 429, text: 'slow' }, 'rate-limited', 3],
    [{ status: 503, text: '<html>', headers: { 'content-type': 'text/html' } }, 'unavailable', 3],
    [{ cut: true }, 'unavailable', 3],
  ]
  for (const [answer, code, times] of cases) {
    const service = await uploads(t, () => answer)
    const error = await failure((await clientOf(service)).upload({ data: 'x' }))
    t.equal(error.code, code, JSON.stringify(answer))
    t.ok(error.advice.length > 10)
    t.equal(service.requests.filter((path) => path.startsWith('POST')).length, times, code)
  }
})

t.test('a repeated upload sends the same item, whatever the key', async (t) => {
  let failures = 2
  const posted: string[] = []
  const service = await uploads(t, ({ body }) => {
    posted.push(String(receiptOf(body).id))
    return failures-- > 0 ? { cut: true } : { json: receiptOf(body) }
  })
  const resume = memoryStore()
  const signer = await signerOfArweave(jwk)
  const first = await clientOf(service, { signer, resume, retry: { tries: 1 } })
  t.equal((await failure(first.upload({ data: 'same' }))).code, 'unavailable')
  const second = await clientOf(service, { signer, resume })
  await second.upload({ data: 'same' })
  t.equal(posted.length, 3)
  t.equal(new Set(posted).size, 1)
  // Done: the next upload of the same content is another item.
  await second.upload({ data: 'same' })
  t.equal(new Set(posted).size, 2)
})

t.test('without a signer nothing is uploaded', async (t) => {
  const service = await uploads(t, () => undefined)
  const client = new SluiceClient({ uploadUrl: service.url, paymentUrl: service.url })
  t.equal((await failure(client.upload({ data: 'x' }))).code, 'no-signer')
  t.strictSame(service.requests, [])
})

/** A service that takes parts as the reference describes them. */
function parts(
  t: Parameters<typeof serving>[0],
  refuse: (path: string) => ServedAnswer | undefined,
): Promise<Counter & { whole(): Buffer }> {
  const kept = new Map<number, Buffer>()
  const chunkSize = 5 * 1024 * 1024
  const whole = (): Buffer => Buffer.concat([...kept].sort(([a], [b]) => a - b).map(([, part]) => part))
  let finalized = false
  return uploads(t, ({ path, body }) => {
    const refused = refuse(path)
    if (refused !== undefined) return refused
    if (path.includes('/-1/-1')) return { json: { id: 'up1', min: chunkSize, max: 524288000, chunkSize } }
    if (path.endsWith('/up1/-1'))
      return {
        json: { id: 'up1', size: chunkSize, chunks: [...kept].map(([at, part]) => [at, part.length]) },
      }
    if (path.endsWith('/finalize')) {
      finalized = true
      return { status: 202, text: 'Accepted' }
    }
    if (path.endsWith('/status'))
      return {
        json: finalized ? { status: 'FINALIZED', receipt: receiptOf(whole()) } : { status: 'ASSEMBLING' },
      }
    kept.set(Number(path.split('/').at(-1)), body)
    return { text: '' }
  }).then((counter) => ({ ...counter, whole }))
}

t.test('long content goes in parts, and goes on where it was', async (t) => {
  const data = Buffer.alloc(17 * 1024 * 1024, 'long content ')
  let broken = 4
  const service = await parts(t, (path) =>
    /\/10485760$/.test(path) && broken-- > 0 ? { status: 503 } : undefined,
  )
  const resume = memoryStore()
  const signer = await signerOfArweave(jwk)
  const first = await clientOf(service, { signer, resume, retry: { tries: 1 } })
  t.equal((await failure(first.upload({ data }))).code, 'unavailable')
  const before = service.requests.filter((line) => /POST .*\/\d+$/.test(line)).length
  const second = await clientOf(service, { signer, resume })
  const receipt = await second.upload({ data })
  t.equal(receipt.id, receiptOf(service.whole()).id)
  t.ok(service.whole().subarray(-data.length).equals(data))
  const after = service.requests.slice(before).filter((line) => /POST .*\/\d+$/.test(line)).length
  t.ok(after <= 4, `${after} parts were sent again`)
  t.equal(service.requests.filter((line) => line.includes('/-1/-1?')).length, 1)
})

t.test('content that changes while it is read is not sent to its end', async (t) => {
  const service = await uploads(t, ({ body }) => ({ json: receiptOf(body) }))
  let reads = 0
  const changing: PayloadSource = {
    size: 4,
    async *open() {
      yield Buffer.from(reads++ === 0 ? 'abcd' : 'abce')
    },
  }
  const client = await clientOf(service)
  t.equal((await failure(client.upload({ data: changing }))).code, 'changed-while-read')
  t.notOk(service.requests.some((line) => line.startsWith('POST')))
})

t.test('an upload stops when its signal fires', async (t) => {
  const stop = new AbortController()
  const service = await uploads(t, () => {
    stop.abort()
    return { status: 503 }
  })
  const client = await clientOf(service, { retry: { tries: 50, delayMs: 10_000 } })
  t.equal((await failure(client.upload({ data: 'x', signal: stop.signal }))).code, 'aborted')
})

/** What a service wants for an upload. */
const offer = {
  scheme: 'exact',
  network: 'base',
  maxAmountRequired: '2000',
  resource: 'http://x/',
  description: '',
  mimeType: '',
  payTo: `0x${'22'.repeat(20)}`,
  maxTimeoutSeconds: 300,
  asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  extra: { name: 'USD Coin', version: '2' },
}

t.test('an offer in USDC is paid under the cap, once, whatever breaks', async (t) => {
  const payments: string[] = []
  let cuts = 3
  const service = await uploads(t, ({ headers, body }) => {
    const payment = headers['x-payment']
    if (typeof payment !== 'string')
      return { status: 402, json: { x402Version: 1, accepts: [offer], error: 'pay' } }
    payments.push(payment)
    return cuts-- > 0 ? { cut: true } : { json: receiptOf(body) }
  })
  const resume = memoryStore()
  const fundingMode = { mode: 'x402', maxMUSDCAmount: 2000n } as const
  const first = await clientOf(service, { resume })
  const low = first.upload({ data: 'x', fundingMode: { ...fundingMode, maxMUSDCAmount: 1999n } })
  t.equal((await failure(low)).code, 'over-cap')
  t.equal((await failure(first.upload({ data: 'x', fundingMode }))).code, 'payment-uncertain')
  const receipt = await (await clientOf(service, { resume })).upload({ data: 'x', fundingMode })
  t.equal(typeof receipt.id, 'string')
  t.equal(payments.length, 4)
  t.equal(new Set(payments).size, 1, 'one authorization, so one settlement at most')
})

t.test('two uploads of one content at once sign one payment', async (t) => {
  const payments: string[] = []
  const service = await uploads(t, ({ headers, body }) => {
    const payment = headers['x-payment']
    if (typeof payment !== 'string')
      return { status: 402, json: { x402Version: 1, accepts: [offer], error: 'pay' } }
    payments.push(payment)
    return { json: receiptOf(body) }
  })
  const fundingMode = { mode: 'x402', maxMUSDCAmount: 2000n } as const
  const resume = memoryStore()
  const clients = await Promise.all([1, 2].map(() => clientOf(service, { resume })))
  await Promise.all(clients.map((client) => client.upload({ data: 'x', fundingMode })))
  t.equal(payments.length, 2)
  t.equal(new Set(payments).size, 1, 'one authorization, so one settlement at most')
})

t.test('an upload that ends late does not forget the payment of a later one', async (t) => {
  const payments: string[] = []
  let answerSecond: () => void = () => undefined
  const second = new Promise<void>((resolve) => {
    answerSecond = resolve
  })
  const service = await uploads(t, async ({ headers }) => {
    const payment = headers['x-payment']
    if (typeof payment !== 'string')
      return { status: 402, json: { x402Version: 1, accepts: [offer], error: 'pay' } }
    const number = payments.push(payment)
    if (number === 2) await second
    return number === 3 ? { cut: true } : { json: { receipt: receiptFor('a'.repeat(43), serviceAddress) } }
  })
  const client = await clientOf(service, { resume: memoryStore(), retry: { tries: 1, delayMs: 1 } })
  const upload = (): Promise<unknown> => client.uploadRawX402Data({ data: 'x', maxMUSDCAmount: 2000n })
  const both = [upload(), upload()]
  await both[0]
  t.equal((await failure(upload())).code, 'payment-uncertain', 'the third has a payment of its own')
  answerSecond()
  await both[1]
  await upload()
  t.equal(payments[0], payments[1])
  t.not(payments[2], payments[0])
  t.equal(payments[3], payments[2], 'which is sent again')
})

t.test('an offer that could not be valid is not signed', async (t) => {
  for (const maxTimeoutSeconds of [-5, 0, 1, 59, 1.5, 1e300, '300']) {
    let payments = 0
    const service = await uploads(t, ({ headers }) => {
      if (headers['x-payment'] !== undefined) payments += 1
      const accepts = [{ ...offer, maxTimeoutSeconds }]
      return { status: 402, json: { x402Version: 1, accepts, error: 'pay' } }
    })
    const fundingMode = { mode: 'x402', maxMUSDCAmount: 2000n } as const
    const client = await clientOf(service, { resume: memoryStore() })
    t.type((await failure(client.upload({ data: 'x', fundingMode }))).code, 'string')
    t.equal(payments, 0, String(maxTimeoutSeconds))
  }
})

t.test('a payment that a service calls failed is sent again, and no second one beside it', async (t) => {
  const payments: string[] = []
  const service = await uploads(t, ({ headers }) => {
    const payment = headers['x-payment']
    if (typeof payment === 'string') payments.push(payment)
    return { status: 402, json: { x402Version: 1, accepts: [offer], error: 'settlement timed out' } }
  })
  const resume = memoryStore()
  const fundingMode = { mode: 'x402', maxMUSDCAmount: 2000n } as const
  for (let run = 0; run < 3; run += 1)
    t.equal(
      (await failure((await clientOf(service, { resume })).upload({ data: 'x', fundingMode }))).code,
      'payment-required',
    )
  t.equal(payments.length, 3)
  t.equal(new Set(payments).size, 1, 'the service could settle each of them')
})
