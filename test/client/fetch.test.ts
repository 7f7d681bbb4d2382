import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { type Finding, ProvingFetcher, type ProvingFetchOptions } from '../../src/client/fetch/index.js'
import { type Running, run, seeded } from '../flow/running.js'
import { type Bend, bent, codeOf, type ServedAnswer, type ServedRequest } from './rig.js'

let running: Running

async function gatewayUrl(): Promise<string> {
  return running.urls.gateway as string
}

async function example(name: string): Promise<string> {
  return running.examples[name] as string
}

/** A gateway that hands on what the real one says, with some answers bent. */
async function liar(t: Test, bend: Bend): Promise<string> {
  return bent(t, await gatewayUrl(), bend)
}

function verifier(
  gatewayUrls: readonly string[],
  options: Partial<ProvingFetchOptions> = {},
): ProvingFetcher {
  return new ProvingFetcher({ gatewayUrls, ...options })
}

const flipped = (bytes: Uint8Array | undefined): Uint8Array =>
  Buffer.from(bytes ?? []).map((byte, at) => (at === 5 ? byte ^ 1 : byte))

/** A place ten million bytes before the right one. */
function shifted(bytes: Uint8Array | undefined): Uint8Array {
  const { size, offset } = JSON.parse(Buffer.from(bytes ?? []).toString()) as Record<string, string>
  return Buffer.from(JSON.stringify({ size, offset: String(Number(offset) - 10_000_000) }))
}

const digestOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

t.test('fetching with proof', async (t) => {
  running = await run(t, t.testdir(), { ...seeded, SERVICES: 'gateway' })
  await t.test(
    'content is proven by its owner: transactions, items, items in bundles in bundles',
    async (t) => {
      const gateway = await gatewayUrl()
      for (const name of ['image', 'item', 'nested']) {
        const id = await example(name)
        const response = await verifier([gateway]).fetch(id)
        const plain = Buffer.from(await (await fetch(`${gateway}/raw/${id}`)).arrayBuffer())
        t.ok(Buffer.from(await response.arrayBuffer()).equals(plain), name)
        t.equal(response.headers.get('x-verified'), 'owner')
        t.match(response.headers.get('x-verified-signer'), /^ed25519:/)
      }
    },
  )

  await t.test('ranges, and content too large for memory, are proven in pieces', async (t) => {
    const gateway = await gatewayUrl()
    const large = await example('large')
    const plain = Buffer.from(await (await fetch(`${gateway}/raw/${large}`)).arrayBuffer())
    const one = verifier([gateway])
    for (const [start, end] of [
      [0, 0],
      [262_143, 262_144],
      [1_000_000, 3_000_000],
      [plain.length - 1, plain.length - 1],
    ] as const) {
      const response = await one.fetch(large, { range: { start, end } })
      t.equal(response.status, 206)
      t.equal(response.headers.get('content-range'), `bytes ${start}-${end}/${plain.length}`)
      t.ok(Buffer.from(await response.arrayBuffer()).equals(plain.subarray(start, end + 1)))
    }
    const whole = await one.fetch(large, { holdBytesMax: 1000 })
    t.equal(whole.headers.get('x-verified'), 'chunks')
    t.equal(digestOf(Buffer.from(await whole.arrayBuffer())), digestOf(plain))
    const nested = await example('nested')
    const text = await (await fetch(`${gateway}/raw/${nested}`)).text()
    const part = await one.fetch(nested, { range: { start: 3 } })
    t.equal(await part.text(), text.slice(3))
    t.equal(part.headers.get('content-type'), 'text/plain; charset=utf-8')
    t.equal(part.headers.get('x-verified'), 'owner')
    t.equal(await codeOf(one.fetch(nested, { range: { start: 41 } })), 'invalid-input')
  })

  await t.test('a path leads through a proven manifest', async (t) => {
    const site = await example('site')
    const one = verifier([await gatewayUrl()])
    t.match(await (await one.fetch(`ar://${site}/`)).text(), /It flows/)
    t.match(await (await one.fetch(`${site}/style.css`)).text(), /color-scheme/)
    t.match(await (await one.fetch(`${site}/no/such/file`)).text(), /Not here/)
    const named = await one.fetch('ar://site/')
    t.match(await named.text(), /It flows/)
    t.equal(named.headers.get('x-verified-name-by'), '1 of 1', 'what a name means is one gateway’s word')
    t.equal(named.headers.get('x-verified-name-id'), site)
  })

  await t.test('a gateway that says of a manifest that it is too long for one is passed over', async (t) => {
    const site = await example('site')
    const bad = await liar(t, ({ path }, answer) =>
      path === `/raw/${site}`
        ? { headers: { ...answer.headers, 'content-length': '100000000' }, cut: false }
        : answer,
    )
    const one = verifier([bad, await gatewayUrl()])
    t.match(await (await one.fetch(`${site}/style.css`)).text(), /color-scheme/)
    t.match(await (await one.fetch('ar://site/')).text(), /It flows/, 'the index, not the manifest itself')
  })

  await t.test('wrong bytes of a gateway are detected, and another one is asked', async (t) => {
    const honest = await gatewayUrl()
    const [image, item, nested] = await Promise.all(['image', 'item', 'nested'].map(example))
    const lies: Record<
      string,
      {
        id: string
        bend: (request: ServedRequest, answer: ServedAnswer) => ServedAnswer | Promise<ServedAnswer>
      }
    > = {
      'a flipped byte of a transaction': {
        id: image as string,
        bend: ({ path }, answer) =>
          path.startsWith('/raw/') ? { ...answer, bytes: flipped(answer.bytes) } : answer,
      },
      'a flipped byte, and digests and signatures taken away': {
        id: item as string,
        bend: ({ path, headers }, { status = 200, headers: lines, bytes }) => {
          if (!path.startsWith('/raw/') || headers.range !== undefined)
            return { status, headers: lines ?? {}, bytes: bytes ?? Buffer.alloc(0) }
          const kept = Object.entries(lines ?? {}).filter(([name]) => !/digest|signature|etag/.test(name))
          return { status, headers: Object.fromEntries(kept), bytes: flipped(bytes) }
        },
      },
      'another item': {
        id: item as string,
        bend: async ({ path }, answer) => {
          if (path !== `/raw/${item}`) return answer
          const other = await fetch(`${honest}/raw/${nested}`)
          return { headers: Object.fromEntries(other.headers), bytes: Buffer.from(await other.arrayBuffer()) }
        },
      },
      'another item under headers of the right one': {
        id: item as string,
        bend: async ({ path }, answer) => {
          if (path !== `/raw/${item}`) return answer
          const headers = Object.entries(answer.headers ?? {}).filter(([name]) => !name.includes('digest'))
          const other = await fetch(`${honest}/raw/${nested}`)
          return { headers: Object.fromEntries(headers), bytes: Buffer.from(await other.arrayBuffer()) }
        },
      },
      'a changed word under the signature': {
        id: image as string,
        bend: ({ path }, answer) =>
          path.startsWith('/raw/')
            ? { ...answer, headers: { ...answer.headers, 'x-gateway-verified': 'maybe' } }
            : answer,
      },
    }
    for (const [what, { id, bend }] of Object.entries(lies)) {
      const bad = await liar(t, bend)
      t.equal(await codeOf(verifier([bad]).fetch(id)), 'untrue', what)
      const findings: Finding[] = []
      const response = await verifier([bad, honest], { onFinding: (one) => findings.push(one) }).fetch(id)
      const plain = Buffer.from(await (await fetch(`${honest}/raw/${id}`)).arrayBuffer())
      t.ok(Buffer.from(await response.arrayBuffer()).equals(plain), what)
      t.match(findings, [{ gateway: bad, error: { code: 'untrue' } }], what)
    }
  })

  await t.test('wrong ranges and chunks are detected before a byte of them is returned', async (t) => {
    const honest = await gatewayUrl()
    const large = await example('large')
    const range = { start: 500_000, end: 900_000 }
    const bends: Record<
      string,
      (request: ServedRequest, answer: ServedAnswer) => ServedAnswer | Promise<ServedAnswer>
    > = {
      'a flipped byte': ({ path }, answer) =>
        path.startsWith('/chunk/') ? { ...answer, bytes: flipped(answer.bytes) } : answer,
      'a chunk of another place': async ({ path }, answer) => {
        const [, offset] = /^\/chunk\/(\d+)\/data/.exec(path) ?? []
        if (offset === undefined) return answer
        const other = await fetch(`${honest}/chunk/${Number(offset) + 1_000_000}/data`)
        return { headers: Object.fromEntries(other.headers), bytes: Buffer.from(await other.arrayBuffer()) }
      },
      'another place of the transaction': ({ path }, answer) =>
        path.endsWith('/offset') ? { ...answer, bytes: shifted(answer.bytes) } : answer,
    }
    for (const [what, bend] of Object.entries(bends)) {
      const bad = await liar(t, bend)
      let given = 0
      const response = await verifier([bad]).fetch(large, { range })
      const read = async (): Promise<void> => {
        for await (const piece of response.body as ReadableStream<Uint8Array>) given += piece.length
      }
      t.match(await codeOf(read()), /untrue|not-found/, what)
      t.equal(given, 0)
      const plain = await (
        await fetch(`${honest}/raw/${large}`, { headers: { range: 'bytes=500000-900000' } })
      ).arrayBuffer()
      const both = await verifier([bad, honest]).fetch(large, { range })
      t.ok(Buffer.from(await both.arrayBuffer()).equals(Buffer.from(plain)), what)
    }
  })

  await t.test('old content under a name is outvoted', async (t) => {
    const honest = await gatewayUrl()
    const old = await example('item')
    const bad = await liar(t, ({ path }, answer) => {
      if (!path.includes('/resolver/')) return answer
      return {
        headers: { 'content-type': 'application/json' },
        bytes: Buffer.from(JSON.stringify({ txId: old })),
      }
    })
    t.equal(await codeOf(verifier([bad, honest]).fetch('ar://site/')), 'untrue')
    const mirror = await liar(t, (_, answer) => answer)
    const findings: Finding[] = []
    const response = await verifier([bad, honest, mirror], { onFinding: (one) => findings.push(one) }).fetch(
      'ar://site/',
    )
    t.match(await response.text(), /It flows/)
    t.match(findings, [{ gateway: bad }])
  })

  await t.test('content that no gateway has is not found', async (t) => {
    t.equal(await codeOf(verifier([await gatewayUrl()]).fetch('A'.repeat(43))), 'not-found')
  })
})
