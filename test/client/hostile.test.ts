/** Services and gateways that answer anything at all: every failure is a ClientError, none is a crash or an endless wait. */
import { writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { SluiceClient } from '../../src/client/client.js'
import type { ClientError } from '../../src/client/errors.js'
import { Gateways } from '../../src/client/fetch/gateways.js'
import { type Finding, ProvingFetcher } from '../../src/client/fetch/index.js'
import { manifestTarget } from '../../src/client/fetch/manifest-target.js'
import { chainLayer } from '../../src/client/folder-index.js'
import { DriveIndex } from '../../src/client/fs/drive-index.js'
import { type ListedItem, readEntity } from '../../src/client/fs/entities.js'
import { Drives } from '../../src/client/fs/index.js'
import { readFolder } from '../../src/client/node/index.js'
import { quoteUploads } from '../../src/client/quote.js'
import { RemoteService } from '../../src/client/service.js'
import { signerOfEthereum } from '../../src/client/signer.js'
import type { TextTag } from '../../src/client/tags.js'
import { fc } from '../property.js'
import { codeOf, info, receiptOf, type ServedAnswer, serving } from './rig.js'

const signer = await signerOfEthereum('0b'.repeat(32))
const retry = { tries: 1, delayMs: 1 }
const id = 'A'.repeat(43)
const another = 'o'.repeat(43)

/** Serves by hand: for answers that never come, or never end. */
async function raw(t: Test, answer: (response: ServerResponse, path: string) => void): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    request.on('error', () => 'the client left')
    response.on('error', () => 'the client left')
    answer(response, request.url ?? '')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Writes zeros as long as somebody reads. */
function endless(response: ServerResponse): void {
  const piece = Buffer.alloc(256 * 1024)
  const more = (): void => {
    while (!response.destroyed && response.write(piece));
  }
  response.on('drain', more)
  more()
}

/** Words of the interface, and values that are not what they should be. */
const words = [
  'id',
  'winc',
  'owner',
  'tags',
  'signature',
  'public',
  'timestamp',
  'version',
  'deadlineHeight',
  'receipt',
  'status',
  'chunkSize',
  'chunks',
  'addresses',
  'fiat',
  'payments',
  'accepts',
  'x402Version',
  'error',
  'code',
  'data',
  'transaction',
  'transactions',
  'edges',
  'node',
  'format',
  'data_size',
  'data_root',
  'offset',
  'size',
  'key',
  'block',
  'pageInfo',
  'topUpQuote',
  'paymentSession',
  'givenApprovals',
  'found',
  'txId',
  'chunk',
  'data_path',
]
const odd = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    '',
    'x',
    '-1',
    '1e400',
    '0x',
    id,
    0,
    -1,
    1,
    2,
    1e300,
    0.5,
    true,
    {},
    [],
    [null],
    [[]],
  ),
  fc.string({ maxLength: 8 }),
)
const shape = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, odd, tie('object'), fc.array(tie('object'), { maxLength: 2 })),
  object: fc.dictionary(fc.constantFrom(...words), tie('value'), { maxKeys: 6 }),
}))
const statuses = [200, 200, 200, 202, 204, 400, 402, 404, 413, 429, 500, 503]
const types = ['application/json', 'application/json', 'text/html', 'text/plain']

t.test(
  'whatever a service or a gateway says, an operation ends with its result or a ClientError',
  async (t) => {
    let answer: ServedAnswer = {}
    const { url } = await serving(t, () => answer)
    const client = new SluiceClient({ uploadUrl: url, paymentUrl: url, gatewayUrls: [url], signer, retry })
    const fundingMode = { mode: 'x402', maxMUSDCAmount: 10n } as const
    const data = Buffer.alloc(20)
    const operations: Record<string, () => PromiseLike<unknown>> = {
      upload: () => client.upload({ data }),
      parts: () => client.upload({ data, chunkingMode: 'force', maxFinalizeMs: 1 }),
      usdc: () => client.upload({ data, fundingMode }),
      balance: () => client.getBalance(),
      free: () => client.getFreeStatus(),
      history: () => client.getPaymentHistory(),
      costs: () => client.getUploadCosts({ bytes: [1] }),
      price: () => client.getTokenPriceForBytes({ byteCount: 5 }),
      approvals: () => client.getCreditShareApprovals({ userAddress: id }),
      whole: () => new ProvingFetcher({ gatewayUrls: [url] }).fetch(id),
      range: async () =>
        (await new ProvingFetcher({ gatewayUrls: [url] }).fetch(id, { range: { start: 0 } })).text(),
      name: () => new ProvingFetcher({ gatewayUrls: [url] }).fetch('ar://name/path'),
      drive: () => new Drives({ gatewayUrl: url }).open('5f1e2a3b-0000-4000-8000-000000000000'),
    }
    const [statusOf, typeOf] = [fc.constantFrom(...statuses), fc.constantFrom(...types)]
    const property = fc.asyncProperty(
      fc.constantFrom(...Object.keys(operations)),
      tie(),
      statusOf,
      typeOf,
      async (name, json, status, type) => {
        answer = { status, headers: { 'content-type': type }, text: JSON.stringify(json) }
        // Anything but a ClientError is thrown on, and fails the property.
        await codeOf((operations[name] as () => PromiseLike<unknown>)())
      },
    )
    await fc.assert(property, { numRuns: 600 })
    t.pass('600 answers')
  },
)

function tie(): fc.Arbitrary<Record<string, unknown>> {
  return shape.object
}

const driveId = '5f1e2a3b-0000-4000-8000-000000000000'
/** An entity of the drive by a stranger's or the owner's wallet, as a gateway lists it. */
const driveNode = (address: string, height: number, tags: TextTag[] = []): ListedItem => ({
  id: Buffer.alloc(32, height).toString('base64url'),
  tags: [{ name: 'Entity-Type', value: 'drive' }, { name: 'Drive-Id', value: driveId }, ...tags],
  owner: { address },
  block: { height },
})

t.test('the owner of a drive costs one query, whoever has copied its tags since', async (t) => {
  const nodes = [driveNode('owner', 1), ...Array.from({ length: 50 }, (_, i) => driveNode('stranger', i + 2))]
  const queries: { sort: string; owners: readonly string[] | undefined }[] = []
  // Two items a page: all of the copies would be 26 pages.
  const fetchPages = async (_url: string, init: { body?: unknown } = {}): Promise<Response> => {
    const { query, variables } = JSON.parse(String(init.body)) as {
      query: string
      variables: { after?: string; owners?: readonly string[] }
    }
    const sort = /sort: (\w+)/.exec(query)?.[1] ?? ''
    queries.push({ sort, owners: variables.owners })
    const from = Number(variables.after ?? 0)
    const listed = variables.owners === undefined ? nodes : []
    const ordered = sort === 'HEIGHT_ASC' ? listed : listed.toReversed()
    const edges = ordered.slice(from, from + 2).map((node, i) => ({ cursor: String(from + i + 1), node }))
    const transactions = { pageInfo: { hasNextPage: from + 2 < ordered.length }, edges }
    return Response.json({ data: { transactions } })
  }
  const code = await codeOf(new Drives({ gatewayUrl: 'http://gateway', fetch: fetchPages }).open(driveId))
  t.equal(code, 'malformed-answer', 'the owner has written nothing else')
  t.equal(queries.filter(({ owners }) => owners === undefined).length, 1)
  t.same(queries[1]?.owners, ['owner'])
})

t.test('a page of a drive whose items have another form is refused', async (t) => {
  const open = (node: unknown, pageInfo: unknown = { hasNextPage: false }): Promise<string | undefined> => {
    const transactions = { pageInfo, edges: [{ cursor: 'x', node }] }
    const fetchPage = async (): Promise<Response> => Response.json({ data: { transactions } })
    return codeOf(new Drives({ gatewayUrl: 'http://gateway', fetch: fetchPage }).open(driveId))
  }
  const odd = [
    null,
    7,
    {},
    { ...driveNode('a', 1), tags: [null] },
    { ...driveNode('a', 1), tags: [{ name: 'x', value: 7 }] },
  ]
  for (const node of odd) t.equal(await open(node), 'malformed-answer', JSON.stringify(node))
  t.equal(await open({ ...driveNode('a', 1), owner: null }), 'malformed-answer')
  t.equal(await open(driveNode('a', 1), null), 'malformed-answer')
})

t.test('JSON of others is read within bounds of its values and its depth', async (t) => {
  const bombs = [
    `{"a":${'['.repeat(65)}${']'.repeat(65)}}${' '.repeat(100_000)}`,
    `{"a":[0${',0'.repeat(10_000_000)}]}`,
  ]
  for (const text of bombs) {
    const fetchBomb = async (): Promise<Response> =>
      new Response(text, { headers: { 'content-type': 'application/json' } })
    const gateways = new Gateways({ gatewayUrls: ['http://gateway'], fetch: fetchBomb })
    t.equal(await codeOf(gateways.json(await fetchBomb(), undefined, 2 ** 25)), 'malformed-answer')
    const service = new RemoteService('http://service', fetchBomb, retry)
    t.equal((await service.ask({ path: '/' })).json, undefined)
    const layer = chainLayer('http://gateway', 'owner', fetchBomb)
    t.equal(await codeOf(layer.find([{ hash: '00', tags: [] }])), 'malformed-answer')
    const drives = new Drives({ gatewayUrl: 'http://gateway', fetch: fetchBomb })
    t.equal(await codeOf(drives.open(driveId)), 'malformed-answer')
    t.match(readEntity(driveNode('owner', 1), Buffer.from(text)), /too much/)
  }
})

t.test('a manifest may be any JSON', (t) => {
  const odd = [
    'null',
    '7',
    '"x"',
    '[]',
    '{"paths":null,"index":null,"fallback":null}',
    '{"index":{"path":{}}}',
  ]
  const members = ['{"paths":{"a":null}}', `{"paths":{"a":{"id":["${id}"]}}}`, '{"fallback":7}', '{', '']
  for (const text of [...odd, ...members])
    for (const path of ['', 'a', 'a/b', '__proto__', 'constructor', '%'])
      t.equal(manifestTarget(Buffer.from(text), path), undefined, `${text} ${path}`)
  t.end()
})

t.test('a manifest of the first version has neither a fallback nor an index by id', (t) => {
  const paths = { 'index.html': { id } }
  const text = (version: string, index: object): Buffer =>
    Buffer.from(
      JSON.stringify({ manifest: 'arweave/paths', version, index, fallback: { id: another }, paths }),
    )
  t.equal(manifestTarget(text('0.2.0', { id: another }), ''), another)
  t.equal(manifestTarget(text('0.2.0', { path: 'index.html' }), 'absent'), another)
  t.equal(manifestTarget(text('0.1.0', { path: 'index.html' }), ''), id)
  t.equal(manifestTarget(text('0.1.0', { id: another, path: 'index.html' }), ''), id)
  t.equal(manifestTarget(text('0.1.0', { path: 'index.html' }), 'absent'), undefined)
  t.end()
})

t.test('bodies without an end are left, and redirects in a circle', async (t) => {
  const url = await raw(t, (response, path) => {
    if (path.startsWith('/circle')) response.writeHead(307, { location: path }).end()
    else endless(response)
  })
  const at = (place: string): SluiceClient =>
    new SluiceClient({ uploadUrl: place, paymentUrl: place, gatewayUrls: [place], signer, retry })
  t.equal(await codeOf(at(url).upload({ data: 'x' })), 'malformed-answer')
  t.equal(await codeOf(at(url).getBalance()), 'malformed-answer')
  t.equal(await codeOf(at(`${url}/circle`).upload({ data: 'x' })), 'rejected')
  const fetcher = new ProvingFetcher({ gatewayUrls: [url] })
  t.equal(await codeOf(fetcher.fetch(id, { holdBytesMax: 1_000_000 })), 'untrue')
  const circle = new ProvingFetcher({ gatewayUrls: [`${url}/circle`] })
  t.equal(await codeOf(circle.fetch(id)), 'unavailable')
})

t.test('what is signed is not carried on to another host; open questions are', async (t) => {
  const other = await serving(t, () => ({ json: { winc: '7' } }))
  for (const status of [301, 302, 303, 307, 308]) {
    const service = await serving(t, ({ path }) => {
      return path === '/v1/info' ? info : { status, headers: { location: other.url + path } }
    })
    const client = new SluiceClient({ uploadUrl: service.url, paymentUrl: service.url, signer, retry })
    const before = other.requests.length
    const failure = await client.upload({ data: 'x' }).then(
      () => undefined,
      (error: unknown) => error as ClientError,
    )
    t.match(failure, { code: 'rejected', status })
    t.ok(failure?.message.includes(other.url), 'the error names the other host')
    t.equal(await codeOf(client.getPaymentHistory()), 'rejected', 'a signed question')
    t.equal(await codeOf(client.upload({ data: 'x', chunkingMode: 'force' })), 'rejected', 'in parts')
    t.equal(other.requests.length, before, 'nobody asked the other host')
    t.equal((await client.getBalance()).winc, '7', 'a balance is no secret')
  }
})

t.test('a service or gateway that answers a byte at a time is left', async (t) => {
  const timers = new Set<NodeJS.Timeout>()
  t.teardown(() => timers.forEach(clearInterval))
  const url = await raw(t, (response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const timer = setInterval(() => response.write(' '), 20)
    timers.add(timer)
    response.on('close', () => clearInterval(timer))
  })
  const slow = { ...retry, answerMs: 300 }
  const client = new SluiceClient({ uploadUrl: url, paymentUrl: url, signer, retry: slow })
  t.equal(await codeOf(client.getBalance()), 'unavailable')
  t.equal(await codeOf(client.upload({ data: 'x' })), 'unavailable')
  const fetcher = new ProvingFetcher({ gatewayUrls: [url], patienceMs: 300 })
  t.equal(await codeOf(fetcher.fetch(id)), 'unavailable')
})

t.test('an id that is not known for now is no absence', async (t) => {
  for (const [headers, code] of [
    [{}, 'not-found'],
    [{ 'retry-after': '10' }, 'unavailable'],
  ] as const) {
    const { url } = await serving(t, () => ({ status: 404, headers }))
    const fetcher = new ProvingFetcher({ gatewayUrls: [url] })
    t.equal(await codeOf(fetcher.fetch(id)), code, 'a whole')
    t.equal(await codeOf(fetcher.fetch(id, { range: { start: 1 } })), code, 'a range')
    const lines = new Gateways({ gatewayUrls: [url], fetch })
    t.equal(await codeOf(lines.whole(`${url}/raw/${id}`, 1000)), code, 'by a fetch that was given')
    const index = new DriveIndex(url, fetch)
    t.equal(await codeOf(index.content(id)), code, 'a file of a drive')
  }
})

t.test('a gateway that falls silent is passed over', async (t) => {
  const silent = await raw(t, () => undefined)
  const stalled = await raw(t, (response, path) => {
    if (path.startsWith('/raw/')) response.writeHead(200, { 'content-length': '1000' }).write('begun')
    else response.writeHead(404).end()
  })
  const missing = await serving(t, () => undefined)
  const found: Finding[] = []
  const fetcher = new ProvingFetcher({
    gatewayUrls: [silent, stalled, missing.url],
    patienceMs: 2000,
    onFinding: (one) => found.push(one),
  })
  await codeOf(fetcher.fetch(id))
  t.match(found, [
    { gateway: silent, error: { code: 'unavailable' } },
    { gateway: stalled, error: { code: 'unavailable' } },
    { gateway: missing.url, error: { code: 'not-found' } },
  ])
})

t.test('a service that wants absurd parts gets none', async (t) => {
  for (const chunkSize of [1, 1e15, -5, '7', null, 0.5]) {
    const service = await serving(t, ({ path, body }) => {
      if (path === '/v1/info') return info
      return path.includes('/-1/-1') ? { json: { id: 'one', chunkSize } } : { json: receiptOf(body) }
    })
    const client = new SluiceClient({ uploadUrl: service.url, paymentUrl: service.url, signer, retry })
    const code = await codeOf(client.upload({ data: 'x', chunkingMode: 'force' }))
    t.equal(code, 'malformed-answer', String(chunkSize))
  }
})

t.test('credits that are no amount are refused as such', async (t) => {
  for (const winc of ['abc', '-5', '1e3', '', null, {}, -1, 0.5]) {
    const service = await serving(t, ({ path }) =>
      path.startsWith('/v1/price') ? { json: { winc } } : path === '/v1/info' ? info : undefined,
    )
    const client = new SluiceClient({ uploadUrl: service.url, paymentUrl: service.url, signer, retry })
    t.equal(await codeOf(quoteUploads(client, [5_000_000])), 'malformed-answer', String(winc))
  }
})

t.test('odd names are read, and what no manifest can say is listed', async (t) => {
  const site = t.testdir({
    'empty folder': {},
    round: { link: t.fixture('symlink', '..') },
    'line\nbreak "%?#.txt': 'x',
  })
  writeFileSync(Buffer.concat([Buffer.from(`${site}/bad-`), Buffer.from([0xff, 0xfe])]), 'x')
  const { files, leftOut } = await readFolder(site)
  t.strictSame(
    files.map(({ path }) => path),
    ['line\nbreak "%?#.txt'],
  )
  t.match(leftOut, [/^bad-.*no Unicode$/, 'empty folder: an empty folder', 'round/link: a symbolic link'])
  t.equal(await codeOf(readFolder(`${site}/nowhere`)), 'not-found')
})
