/** Three upload services on one PostgreSQL and one bucket, behind HAProxy: each request of an upload goes to another one. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { findPort } from '../../src/actor/claim.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { startPostgres } from '../engines/postgres-server.js'
import { bucketAt, hasRadosgw, startRadosgw, storeSettings } from '../engines/radosgw.js'
import { postgresAbsent } from '../engines/two-machines.js'
import { eventually } from '../eventually.js'
import { suspend } from '../suspend.js'
import { type Running, run } from './running.js'
import { largeFile, turboLibrary, withoutTurbo } from './turbo.js'

const hasAll = spawnSync('haproxy', ['-v']).status === 0 && hasRadosgw && postgresAbsent.skip === false
const configuration = readFileSync(
  fileURLToPath(new URL('../../../deploy/cluster/haproxy.cfg', import.meta.url)),
  'utf8',
)
const partBytes = 5_242_880
const signer = ed25519Signer(Buffer.alloc(32, 35))

/** HAProxy by the file of deploy/cluster, each request to the next machine. Resolves with the URL of the upload service. */
async function balanced(t: Test, folder: string, machines: readonly Running[]): Promise<string> {
  const ports = await Promise.all([1, 2, 3, 4].map(() => findPort('127.0.0.1', 0, 'a port of HAProxy')))
  const [gateway, upload, payment, state] = ports
  const placed = configuration
    .replace('bind :8000', `bind 127.0.0.1:${gateway}`)
    .replace('bind :8001', `bind 127.0.0.1:${upload}`)
    .replace('bind :8002', `bind 127.0.0.1:${payment}`)
    .replace('127.0.0.1:8404', `127.0.0.1:${state}`)
    .replaceAll('balance leastconn', 'balance roundrobin')
    .replace(/gateway-([123]):300([012])/g, (_, number: string, service: string) => {
      const { urls } = machines[Number(number) - 1] ?? { urls: { upload: undefined } }
      return new URL((service === '1' ? urls.upload : undefined) ?? 'http://127.0.0.1:1').host
    })
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, placed)
  const proxy = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = once(proxy, 'exit')
  t.teardown(async () => {
    proxy.kill('SIGKILL')
    await ended
  })
  return `http://127.0.0.1:${upload}`
}

/** What of turbo-sdk is used here. */
interface Library {
  readonly TurboFactory: {
    authenticated(options: object): { uploadFile(options: object): Promise<{ id: string; winc: string }> }
  }
}

interface Answer {
  readonly status: number
  readonly by: string
  readonly json: {
    readonly id?: string
    readonly status?: string
    readonly receipt?: { readonly id: string }
  }
}

async function request(url: string, method = 'GET', body?: Uint8Array): Promise<Answer> {
  const answer = await fetch(url, { method, ...(body === undefined ? {} : { body: Buffer.from(body) }) })
  const text = await answer.text()
  const by = answer.headers.get('x-served-by') ?? ''
  return { status: answer.status, by, json: text.startsWith('{') ? JSON.parse(text) : {} }
}

/** As clients do: what fails for a reason of the service is repeated. */
function patiently(url: string, method = 'GET', body?: Uint8Array): Promise<Answer> {
  return eventually('an answer below 500', async () => {
    const answer = await request(url, method, body).catch(() => undefined)
    return answer !== undefined && answer.status < 500 ? answer : undefined
  })
}

let items = 0
function newItem(parts: number): Buffer {
  items += 1
  return Buffer.from(signItem(signer, {}, Buffer.alloc(parts * partBytes - 1000, `item ${items} `)))
}

t.test(
  'three upload services',
  { skip: hasAll ? false : 'PostgreSQL, radosgw or haproxy is not installed' },
  async (t) => {
    const [postgres, radosgw] = await Promise.all([startPostgres(), startRadosgw()])
    t.teardown(() => Promise.all([postgres.stop(), radosgw.stop()]))
    const bucket = await bucketAt(radosgw)
    const folders = t.testdir({ one: {}, two: {}, three: {}, proxy: {} })
    const settings = (node: string): Record<string, string> => ({
      ...storeSettings(radosgw, bucket),
      SERVICES: 'upload',
      CLUSTER_DATABASE_URL: postgres.url,
      CLUSTER_NODE: node,
      UPLOAD_FREE_ITEM_BYTES: '900000000',
      UPLOAD_FREE_WALLET_BYTES: '9000000000',
      UPLOAD_FREE_RANGE_BYTES: '9000000000',
      UPLOAD_BUNDLE_WAIT_SECONDS: '3600',
    })
    const started = (node: 'one' | 'two' | 'three', more = {}): Promise<Running> =>
      run(t, `${folders}/${node}`, { ...settings(node), ...more })
    const [one, two, three] = await Promise.all([started('one'), started('two'), started('three')])
    const url = await balanced(t, join(folders, 'proxy'), [one, two, three])
    await eventually('all are in', async () => {
      const answers = await Promise.all(
        Array.from({ length: 9 }, () => request(`${url}/v1/info`).catch(() => undefined)),
      )
      return (
        new Set(answers.map((answer) => answer?.by)).size === 3 && answers.every((one) => one?.status === 200)
      )
    })
    const begun = async (): Promise<string> => {
      const { json } = await eventually('it is begun', async () => {
        const answer = await request(`${url}/chunks/arweave/-1/-1?chunkSize=${partBytes}`)
        return answer.status === 200 ? answer : undefined
      })
      return `${url}/chunks/arweave/${json.id}`
    }
    const sendParts = async (upload: string, item: Buffer, from = 0): Promise<string[]> => {
      const by: string[] = []
      for (let at = from; at < item.length; at += partBytes) {
        const answer = await patiently(`${upload}/${at}`, 'POST', item.subarray(at, at + partBytes))
        t.equal(answer.status, 200)
        by.push(answer.by)
      }
      return by
    }
    const finalizedOf = (upload: string): Promise<Answer> =>
      eventually('it is finalized', async () => {
        const answer = await request(`${upload}/status`).catch(() => undefined)
        return answer?.json.status === 'FINALIZED' ? answer : undefined
      })

    await t.test('requests go anywhere', async (t) => {
      const upload = await begun()
      const by = await sendParts(upload, newItem(6))
      t.equal(new Set(by).size, 3, by.join())
      const answers = await Promise.all([1, 2, 3, 4].map(() => patiently(`${upload}/-1`, 'POST')))
      t.strictSame(
        answers.map(({ status }) => status),
        [200, 200, 200, 200],
      )
      t.equal(new Set(answers.map(({ json }) => JSON.stringify(json))).size, 1, 'one receipt')
      const states = await Promise.all([1, 2, 3].map(() => request(`${upload}/status`)))
      t.equal(new Set(states.map(({ json }) => JSON.stringify(json))).size, 1)
    })

    await t.test("turbo-sdk's upload in parts", { skip: withoutTurbo }, async (t) => {
      const { TurboFactory } = await turboLibrary<Library>()
      const jwk = fileURLToPath(new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url))
      const turbo = TurboFactory.authenticated({
        privateKey: JSON.parse(readFileSync(jwk, 'utf8')),
        uploadServiceConfig: { url },
        paymentServiceConfig: { url },
      })
      const { factories } = largeFile(join(folders, 'proxy'), 60_000_000)
      const file = await turbo.uploadFile({ ...factories, chunkingMode: 'force', maxChunkConcurrency: 5 })
      t.match(file, { winc: '0', id: String })
      t.equal((await request(`${url}/v1/tx/${file.id}/status`)).status < 500, true)
    })

    await t.test('a machine is killed between parts', async (t) => {
      const upload = await begun()
      const item = newItem(4)
      await sendParts(upload, item.subarray(0, 3 * partBytes))
      await two.kill()
      await sendParts(upload, item, 3 * partBytes)
      t.equal((await patiently(`${upload}/-1`, 'POST')).status, 200)
    })

    await t.test('a machine is killed while it finalizes, and another one stands still', async (t) => {
      const port = { UPLOAD_PORT: new URL(two.urls.upload ?? '').port }
      const again = await started('two', port)
      const uploads = await Promise.all([1, 2, 3, 4].map(() => begun()))
      for (const upload of uploads) await sendParts(upload, newItem(3))
      const ordered = await Promise.all(
        uploads.map((upload) =>
          request(`${new URL(upload).pathname.replace(/^/, one.urls.upload ?? '')}/finalize`, 'POST'),
        ),
      )
      t.ok(ordered.every(({ status }) => status === 202))
      await one.kill()
      await suspend(three.process)
      for (const upload of uploads) await finalizedOf(upload)
      three.process.kill('SIGCONT')
      const receipts = await Promise.all(
        uploads.map(async (upload) => {
          const path = new URL(upload).pathname
          const answers = await Promise.all(
            [again, three].map(({ urls }) => patiently(`${urls.upload}${path}/status`)),
          )
          return new Set(answers.map(({ json }) => JSON.stringify(json.receipt))).size
        }),
      )
      t.strictSame(receipts, [1, 1, 1, 1], 'one receipt of each')
    })
  },
)
