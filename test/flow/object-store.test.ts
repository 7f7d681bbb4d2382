/** Two whole programs, each with a disk of its own, on one bucket of a real S3 service. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { bucketAt, type Radosgw, radosgwAbsent, startRadosgw, storeSettings } from '../engines/radosgw.js'
import { eventually } from '../eventually.js'
import { suspend } from '../suspend.js'
import { type Running, run, seeded, sluice } from './running.js'

function storeAt(radosgw: Radosgw, bucket: string): Record<string, string> {
  return {
    SERVICES: 'gateway',
    ...storeSettings(radosgw, bucket),
  }
}

async function metric({ urls }: Running, name: string): Promise<number> {
  const text = await (await fetch(`${urls.gateway}/gateway/__gateway_metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(name))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

const isState = (running: Running, state: string): Promise<boolean> =>
  metric(running, `content_store_state{state="${state}"`).then((value) => value > 0)

async function read(running: Running, path: string): Promise<{ answer: Response; bytes: Buffer }> {
  const answer = await fetch(`${running.urls.gateway}/raw/${path}`)
  return { answer, bytes: Buffer.from(await answer.arrayBuffer()) }
}

t.test('content of one gateway is served by another', radosgwAbsent, async (t) => {
  const server = await startRadosgw()
  t.teardown(() => server.stop())
  const settings = storeAt(server, await bucketAt(server))
  const [onePath, otherPath] = [t.testdir({ one: {}, other: {} })].flatMap((path) => [
    `${path}/one`,
    `${path}/other`,
  ])
  if (onePath === undefined || otherPath === undefined) throw new Error('no folders')
  const one = await run(t, onePath, { ...settings, ...seeded })
  const ids = ['image', 'large', 'page'].map((name) => one.examples[name] ?? '')
  const bodies = new Map<string, Buffer>()
  for (const id of ids) bodies.set(id, (await read(one, id)).bytes)
  await eventually('content is in the store', async () => {
    const known = await metric(one, 'content_store_known')
    return known >= ids.length && (await metric(one, 'content_store_waiting')) === 0
  })

  const other = await run(t, otherPath, settings)
  await eventually('the other one knows of the packs', () => isState(other, 'well'))
  await eventually(
    'the other one knows of the contents',
    async () => (await metric(other, 'content_store_known')) > 0,
  )
  for (const id of ids) {
    const { answer, bytes } = await read(other, id)
    t.equal(answer.status, 200, id)
    t.ok(bytes.equals(bodies.get(id) ?? Buffer.alloc(0)))
    t.not(answer.headers.get('x-gateway-verified'), 'true', 'it has not proven it')
  }
  t.equal(await metric(other, 'content_store_reads_total{outcome="forged"'), 0)

  await t.test('items of a stored bundle are read out of the bundle', async (t) => {
    for (const name of ['item', 'nested']) {
      const id = one.examples[name] ?? ''
      const { bytes } = await read(one, id)
      const found = await eventually(`${name} is listed`, async () => {
        const got = await read(other, id)
        return got.answer.status === 200 && got
      })
      t.ok(found.bytes.equals(bytes), name)
    }
  })

  await t.test('an operator sees it, and moves content by a command', async (t) => {
    const at = (running: Running, path: string): [string[], Record<string, string>] => [
      ['--gateway', running.urls.gateway ?? ''],
      { ...settings, DATA_PATH: path },
    ]
    const [words, environment] = at(one, onePath)
    const push = await sluice(['store', 'push', ...words, '--json'], environment)
    t.equal(push.code, 0, push.err)
    t.match(JSON.parse(push.out), {
      state: 'well',
      waiting: 0,
      walk: { kind: 'push', state: 'over', failed: 0 },
    })
    const status = await sluice(['store', 'status', ...words], environment)
    t.match(status.out, /^store: well$/m)
    const pull = await sluice(['store', 'pull', ...at(other, otherPath)[0]], at(other, otherPath)[1])
    t.equal(pull.code, 0, pull.err)
    t.match(pull.out, /pull: over, \d+ seen/)
    t.equal((await sluice(['store', 'push', '--gateway', 'http://127.0.0.1:1'], environment)).code, 5)
    t.equal((await sluice(['store', 'other'], environment)).code, 2)
  })

  await t.test('a store that hangs holds up nobody, and health says so', async (t) => {
    await suspend(server.gateway)
    const { answer } = await read(other, randomBytes(32).toString('base64url'))
    t.ok(answer.status >= 400)
    await eventually('it is left alone', async () => {
      await read(other, randomBytes(32).toString('base64url'))
      return isState(other, 'away')
    })
    const reads = await metric(other, 'content_store_reads_total')
    for (const id of ids) t.equal((await read(other, id)).answer.status, 200, 'what is on disk is served')
    t.equal(await metric(other, 'content_store_reads_total'), reads, 'without the store')
    const health = (await (await fetch(`${other.urls.gateway}/gateway/healthcheck`)).json()) as object
    t.match(health, { status: 'ok', warnings: [/the object store does not answer/] })
    server.gateway.kill('SIGCONT')
    await eventually('it is well again', async () => {
      await read(other, randomBytes(32).toString('base64url'))
      return isState(other, 'well')
    })
  })

  await t.test('nothing of a secret is in the log', async (t) => {
    for (const running of [one, other]) {
      t.notMatch(JSON.stringify(running.log), /testsecret/)
      t.equal(await running.stop(), 0)
    }
  })
})
