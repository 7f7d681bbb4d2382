/** Who may sign: what the operator wrote down, and what a registry says, from a file or over HTTP. */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Agent } from 'undici'
import { readConfig } from '../../config/read.js'
import { systemClock } from '../../src/actor/clock.js'
import { PinnedKeys } from '../../src/bands/publisher-keys.js'
import { RegisteredKeys, readRegistry } from '../../src/bands/registered-keys.js'
import { encodeBase58 } from '../../src/format/base58.js'
import { isRefusal } from '../../src/format/refusal.js'
import { fc } from '../property.js'
import { conformPublisherKeys } from './publisher-keys.js'

const someone = (): string => encodeBase58(randomBytes(32))
const url = 'https://gateway.example/gateway'
const [wallet, other, stranger] = [someone(), someone(), someone()]
const [key, second, third] = [someone(), someone(), someone()]
const never = new AbortController().signal
const dispatcher = new Agent()
t.teardown(() => dispatcher.destroy())

/** As a gateway answers `/peers`, with what such answers also hold, and with rubbish. */
const registry = JSON.stringify({
  gateways: {
    'one.example:443': { url: 'https://one.example', dataWeight: 50, wallet, observerAddress: key },
    'two.example:443': { wallet: other, observerAddress: second },
    'three.example:443': { wallet: other, observerAddress: third },
    'four.example:443': { wallet: stranger },
    'five.example:443': { wallet: stranger, observerAddress: 'short' },
    'six.example:443': null,
    __proto__: 7,
  },
  arweaveNodes: {},
})
const known = [
  [{ url, publisher: wallet }, [key]],
  [{ url, publisher: other }, [second, third]],
  [{ url, keyId: stranger }, [stranger]],
] as const

function registered(source: string, believeMs = 60_000): RegisteredKeys {
  const asking = { dispatcher, timeoutMs: 5000, userAgent: 'test' }
  return new RegisteredKeys({ source, believeMs }, new PinnedKeys(), asking, systemClock)
}

/** A registry that answers what it is told, or nothing. */
async function registryServer(
  t: Test,
): Promise<{ url: string; requests: () => number; say: (text: string | undefined) => void }> {
  let served: string | undefined = registry
  let requests = 0
  const server = createServer((_request, response) => {
    requests += 1
    if (served === undefined) response.writeHead(503).end()
    else response.end(served)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const say = (text: string | undefined): void => {
    served = text
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/gateway/peers`,
    requests: () => requests,
    say,
  }
}

t.test('keys that were written down', async (t) => {
  const pinned = known.filter(([one]) => 'keyId' in one)
  await conformPublisherKeys(t, {
    keys: new PinnedKeys(),
    known: pinned,
    unknown: { url, publisher: wallet },
  })
})

t.test('a registry in a file', async (t) => {
  const path = join(t.testdir(), 'registry.json')
  writeFileSync(path, registry)
  await conformPublisherKeys(t, { keys: registered(path), known, unknown: { url, publisher: stranger } })
})

t.test('a registry over HTTP', async (t) => {
  const server = await registryServer(t)
  await conformPublisherKeys(t, {
    keys: registered(server.url),
    known,
    unknown: { url, publisher: stranger },
  })
})

t.test(
  'a key that was taken back counts until the answer is too old, and no failure brings it back',
  async (t) => {
    const server = await registryServer(t)
    const [patient, hasty] = [registered(server.url), registered(server.url, 0)]
    const of = { url, publisher: wallet }
    t.same(await patient.of(of, never), { keyIds: [key], publisher: wallet })
    t.same(await hasty.of(of, never), { keyIds: [key], publisher: wallet })
    server.say(registry.replace(key, third))
    t.same(await patient.of(of, never), { keyIds: [key], publisher: wallet })
    t.same(await hasty.of(of, never), { keyIds: [third], publisher: wallet })
    for (const [text, reason] of [
      [undefined, 'upstream'],
      ['', 'malformed'],
      ['{"gateways":[]}', 'malformed'],
      [' '.repeat(9 << 20), 'too-large'],
    ] as const) {
      server.say(text)
      const found = await hasty.of(of, never)
      t.equal(isRefusal(found) && found.refused, reason)
    }
    const calm = registered(server.url)
    const before = server.requests()
    for (let times = 0; times < 3; times += 1) t.ok(isRefusal(await calm.of(of, never)))
    t.equal(server.requests(), before + 1, 'who failed is left alone for a while')
    t.ok(isRefusal(await registered('/nowhere/registry.json').of(of, never)))
    t.ok(isRefusal(await registered('http://127.0.0.1:1/').of(of, never)))
  },
)

t.test('whatever a registry says, it is read or refused', async (t) => {
  const word = fc.oneof(fc.constantFrom('gateways', 'wallet', 'observerAddress', wallet, key), fc.string())
  const any = fc.object({ key: word, values: [fc.constantFrom(wallet, key), fc.string(), fc.nat()] })
  fc.assert(
    fc.property(fc.oneof(any, fc.record({ gateways: any })), (value) => {
      const read = readRegistry(Buffer.from(JSON.stringify(value)))
      return isRefusal(read) || [...read.values()].every((keys) => keys.length > 0)
    }),
    { numRuns: 500 },
  )
  t.ok(isRefusal(readRegistry(randomBytes(100))))
})

t.test('who is followed is told by key or by wallet; a wallet needs a registry', async (t) => {
  const read = (settings: Record<string, string>) => {
    const config = readConfig({}, settings)
    return 'swarm' in config ? config.swarm.subscriptions : config.length
  }
  const text = `https://a.example#${key}, http://b.example/x/#wallet:${wallet}`
  t.same(read({ INDEX_SUBSCRIPTIONS: text, INDEX_REGISTRY: '/registry.json' }), [
    { url: 'https://a.example', keyId: key },
    { url: 'http://b.example/x', publisher: wallet },
  ])
  t.equal(read({ INDEX_SUBSCRIPTIONS: text }), 1)
  for (const bad of ['https://a.example', `https://a.example#purse:${wallet}`, `ftp://a#${key}`, `#${key}`]) {
    t.equal(read({ INDEX_SUBSCRIPTIONS: bad }), 1, bad)
  }
})
