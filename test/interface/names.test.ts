import { writeFileSync } from 'node:fs'
import t from 'tap'
import { eventually } from '../eventually.js'
import { run, sluice, twoEdges } from '../flow/running.js'
import { askAt } from '../gateway/rig.js'
import { nameGateway, registryServer } from '../names/registry-server.js'
import { someId } from '../source/rig.js'

t.test('names set while the gateway runs are known on all threads, and after kill -9', async (t) => {
  const dataPath = `${t.testdir()}/data`
  const environment = { DATA_PATH: dataPath }
  const running = await run(t, dataPath, { ...twoEdges, SERVICES: 'gateway' })
  // What a name means is said whether or not its content is here. So many connections reach every thread.
  const answers = async (base: string, name: string): Promise<string> => {
    const wish = { host: `${name}.localhost` }
    const all = await Promise.all(Array.from({ length: 24 }, () => askAt(base, '/', 'HEAD', wish)))
    return [...new Set(all.map(({ headers }) => headers['x-ns-resolved-id'] ?? 'nothing'))].join()
  }
  const comes = async (wanted: string): Promise<void> => {
    const seen = await eventually(
      'the name has its target',
      async () => (await answers(running.urls.gateway ?? '', 'docs_site')) === wanted,
    )
    t.ok(seen, wanted)
  }
  await comes('nothing')
  const [before, after] = [someId(), someId()]
  for (const id of [before, after]) {
    t.equal((await sluice(['names', 'set', 'docs_site', id, '--ttl', '3600'], environment)).code, 0)
    await comes(id)
  }
  t.equal((await sluice(['names', 'remove', 'docs_site'], environment)).code, 0)
  await comes('nothing')

  const file = `${dataPath}-names.json`
  const two = { id: after, ttlSeconds: 5, undernameLimit: 1, recordIndex: 0 }
  writeFileSync(file, JSON.stringify({ one: before, two }))
  t.match(await sluice(['names', 'import', file], environment), { code: 0, out: '2 names set\n' })
  await running.kill()
  const second = await run(t, dataPath, { ...twoEdges, SERVICES: 'gateway' })
  t.same(await answers(second.urls.gateway ?? '', 'two'), after)
  const listed = await sluice(['names', 'list', '--json'], environment)
  t.same(JSON.parse(listed.out), { one: { id: before, ttlSeconds: 900 }, two })
  const metrics = await (await fetch(`${second.urls.gateway}/gateway/__gateway_metrics`)).text()
  t.match(metrics, /^arns_resolver_answers_total\{resolver="local",outcome="found",release="[^"]+"\} [1-9]/m)
  t.match(metrics, /^arns_cache_miss_total\{release="[^"]+"\} [1-9]/m)
})

t.test(
  'resolvers are asked in the order that the operator says; the resolver route tells what they said',
  async (t) => {
    const [theirs, registered] = [someId(), someId()]
    const gatewayHas = new Map([
      ['theirs', { id: theirs, ttlSeconds: 60, antId: 'token', antProgramId: 'program' }],
    ])
    const both = { id: registered, ttlSeconds: 30, undernameLimit: 3, recordIndex: 1 }
    const registryHas = new Map([
      ['both', both],
      ['theirs', both],
    ])
    const [up, registry] = [await nameGateway(gatewayHas, 'X-ArNS-'), await registryServer(registryHas)]
    t.teardown(() => Promise.all([up.close(), registry.close()]))
    const running = await run(t, t.testdir(), {
      SERVICES: 'gateway',
      ARNS_ROOT_HOST: 'gw.example',
      ARNS_REGISTRY_URL: registry.url,
      TRUSTED_ARNS_GATEWAY_URL: `${up.url}/__NAME__`,
      INTERFACE_VOCABULARY: 'ar-io',
    })
    const ask = (name: string, method?: string) =>
      askAt(running.urls.gateway ?? '', `/ar-io/resolver/${name}`, method, { host: 'gw.example' })
    const found = await ask('Theirs')
    t.match(found, { status: 200, headers: { 'x-arns-resolved-id': theirs, 'x-arns-ttl-seconds': '60' } })
    t.match(found.headers['signature-input'], '"x-arns-resolved-id"')
    t.match(JSON.parse(found.body.toString()), {
      txId: theirs,
      ttlSeconds: 60,
      processId: 'token',
      antId: 'token',
      antProgramId: 'program',
      resolvedAt: Number,
      index: 0,
      limit: 10,
    })
    const second = await ask('both')
    t.match(JSON.parse(second.body.toString()), { txId: registered, ttlSeconds: 30, index: 1, limit: 3 })
    t.match(second.headers, { 'x-arns-record-index': '1', 'x-arns-undername-limit': '3' })
    t.match(await ask('both', 'HEAD'), {
      status: 200,
      body: Buffer.alloc(0),
      headers: { 'x-arns-resolved-id': registered },
    })
    for (const name of ['nobody', '', 'a.b', '%20', 'x'.repeat(100)]) {
      t.match(await ask(name), { status: 404, body: Buffer.from('Not found') }, name)
    }
    t.match(up.requests[0]?.headers, { 'x-ar-io-via': 'gw.example' }, 'so that a circle would be seen')
    const info = await askAt(running.urls.gateway ?? '', '/ar-io/info')
    const resolvers = ['local', 'gateway', 'on-demand']
    t.match(JSON.parse(info.body.toString()), { names: { rootHosts: ['gw.example'], resolvers } })
    await up.close()
    await registry.close()
    t.match(await ask('later'), { status: 502, headers: { 'cache-control': 'no-store' } })
    t.match(await ask('both'), { status: 200 }, 'what is remembered stays')
    await running.kill()
  },
)
