import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { guarded } from '../../src/names/guarded-resolver.js'
import { JsonRpcRegistry } from '../../src/names/json-rpc-registry.js'
import { LocalNames } from '../../src/names/local-names.js'
import { LocalRegistry } from '../../src/names/local-registry.js'
import { parseName } from '../../src/names/name.js'
import type { Name, NameRecord } from '../../src/names/names-port.js'
import { TrustedNameGateway } from '../../src/names/trusted-gateway.js'
import { nameGateway, registryServer } from '../names/registry-server.js'
import { someId } from '../source/rig.js'
import { conformResolver } from './resolver.js'

const full = (more: Partial<NameRecord>): NameRecord => ({
  id: someId(),
  ttlSeconds: 900,
  antId: 'a'.repeat(43),
  antProgramId: 'p'.repeat(44),
  undernameLimit: 10,
  recordIndex: 0,
  ...more,
})
const has = new Map([
  ['site', full({})],
  ['docs_site', full({ recordIndex: 1, ttlSeconds: 60 })],
  ['over_site', full({ recordIndex: 11, undernameLimit: 10 })],
])

const guard = { timeoutMs: 30_000, failuresMax: 5, restMs: 1000, restMaxMs: 30_000 }

for (const prefix of ['X-ArNS-', 'X-NS-']) {
  t.test(`a trusted gateway that says ${prefix}`, async (t) => {
    const server = await nameGateway(has, prefix)
    const resolver = new TrustedNameGateway({
      url: `${server.url}/__NAME__`,
      release: 'r',
      connectionsMax: 4,
    })
    t.teardown(async () => {
      await resolver.close()
      await server.close().catch(() => 'closed by the test')
    })
    await conformResolver(t, { resolver, has, breaks: () => server.close() })
  })
}

t.test('a trusted gateway that is told the name by its Host header', async (t) => {
  const server = await nameGateway(has, 'X-NS-')
  const hostHeader = '__NAME__.gateway.example'
  const resolver = new TrustedNameGateway({ url: server.url, hostHeader, release: 'r', connectionsMax: 4 })
  t.teardown(async () => {
    await resolver.close()
    await server.close()
  })
  await conformResolver(t, { resolver, has })
})

t.test('a registry over JSON-RPC', async (t) => {
  const server = await registryServer(has)
  const resolver = new JsonRpcRegistry(server.url, 4)
  t.teardown(async () => {
    await resolver.close()
    await server.close().catch(() => 'closed by the test')
  })
  await conformResolver(t, { resolver, has, breaks: () => server.close() })
})

t.test('a registry behind a guard', async (t) => {
  const server = await registryServer(has)
  const registry = new JsonRpcRegistry(server.url, 4)
  t.teardown(async () => {
    await registry.close()
    await server.close().catch(() => 'closed by the test')
  })
  const resolver = guarded(registry, guard, systemClock, (error) => t.fail(String(error)))
  await conformResolver(t, { resolver, has, breaks: () => server.close() })
})

t.test('the names of this machine', async (t) => {
  const path = `${t.testdir()}/names`
  const registry = new LocalRegistry(path)
  registry.set([...has].map(([text, record]) => [parseName(text) as Name, record]))
  await registry.close()
  const resolver = new LocalNames(path, systemClock)
  t.teardown(() => resolver.close())
  await conformResolver(t, { resolver, has })
})
