/** Gateways behind HAProxy by the file of deploy/cluster: one is stopped, one is killed, and no reader notices. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { findPort } from '../../src/actor/claim.js'
import { pause } from '../../src/actor/clock.js'
import { eventually } from '../eventually.js'
import { type Running, run } from './running.js'

const hasHaproxy = spawnSync('haproxy', ['-v']).status === 0
const configuration = readFileSync(
  fileURLToPath(new URL('../../../deploy/cluster/haproxy.cfg', import.meta.url)),
  'utf8',
)

interface Answer {
  readonly status: number
  readonly by: string
}

const agent = new Agent({ keepAlive: true, maxSockets: 8 })

function answerOf(port: number, path: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    get({ port, path, agent }, (answer) => {
      answer.resume().on('error', reject)
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, by: String(answer.headers['x-served-by'] ?? '') }),
      )
    }).on('error', reject)
  })
}

/** The file with free ports of this machine. Servers of other services get none that answers. */
async function localFile(gateways: readonly Running[], port: number): Promise<string> {
  const [upload, payment, state] = await Promise.all(
    [1, 2, 3].map(() => findPort('127.0.0.1', 0, 'a port of HAProxy')),
  )
  const placed = configuration
    .replace('bind :8000', `bind 127.0.0.1:${port}`)
    .replace('bind :8001', `bind 127.0.0.1:${upload}`)
    .replace('bind :8002', `bind 127.0.0.1:${payment}`)
    .replace('127.0.0.1:8404', `127.0.0.1:${state}`)
  return placed.replace(/gateway-([123]):300([012])/g, (_, number: string, service: string) => {
    const gateway = gateways[Number(number) - 1]?.urls.gateway ?? 'http://127.0.0.1:1'
    return service === '0' ? new URL(gateway).host : '127.0.0.1:1'
  })
}

t.test(
  'two gateways behind HAProxy',
  { skip: hasHaproxy ? false : 'haproxy is not installed (Debian: haproxy)' },
  async (t) => {
    const folders = t.testdir({ one: {}, two: {}, proxy: {} })
    const settings = { SERVICES: 'gateway', DEVNET_SEED: 'false', SHUTDOWN_NOTICE_MS: '5000' }
    const [one, two] = await Promise.all([
      run(t, `${folders}/one`, settings),
      run(t, `${folders}/two`, settings),
    ])
    const port = await findPort('127.0.0.1', 0, 'the port of HAProxy')
    const file = join(folders, 'proxy', 'haproxy.cfg')
    writeFileSync(file, await localFile([one, two], port))
    const checked = spawnSync('haproxy', ['-c', '-f', file], { encoding: 'utf8' })
    t.equal(checked.status, 0, checked.stderr)
    const proxy = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] })
    let proxyLog = ''
    proxy.stderr.setEncoding('utf8').on('data', (text: string) => {
      proxyLog += text
    })
    const ended = once(proxy, 'exit')
    t.teardown(async () => {
      agent.destroy()
      proxy.kill('SIGKILL')
      await ended
    })
    const servers = async (): Promise<Set<string>> => {
      const answers = await Promise.all(Array.from({ length: 12 }, () => answerOf(port, '/gateway/info')))
      return new Set(answers.filter(({ status }) => status === 200).map(({ by }) => by))
    }
    await eventually('both answer', async () => {
      const found = await servers().catch(() => new Set())
      return found.size === 2
    })

    await t.test('what is for operators alone is not forwarded', async (t) => {
      for (const path of [
        '/gateway/admin/debug',
        '//gateway/%61dmin/debug',
        '/gateway/__gateway_metrics',
        '/AR-IO/admin',
      ])
        t.equal((await answerOf(port, path)).status, 404, path)
    })

    let isReading = true
    t.teardown(() => {
      isReading = false
    })
    let statuses = new Map<number | string, number>()
    /** What was answered since the last call. */
    const answered = (): [number | string, number][] => {
      const all = [...statuses]
      statuses = new Map()
      return all
    }
    const well = (answers: readonly [number | string, number][], when: string): unknown =>
      t.strictSame(
        new Set(answers.map(([what]) => what)),
        new Set([200]),
        `${when}: ${JSON.stringify(answers)}`,
      )
    const count = (what: number | string): void => void statuses.set(what, (statuses.get(what) ?? 0) + 1)
    /** Requests of each reader that are over. */
    const ends = [0, 0, 0, 0]
    const readers = ends.map(async (_, reader) => {
      while (isReading) {
        await answerOf(port, '/gateway/info').then(
          ({ status, by }) => count(status === 200 ? status : `${status} by ${by || 'HAProxy'}`),
          (error: Error) => count(error.message),
        )
        ends[reader] = (ends[reader] ?? 0) + 1
        await pause(5)
      }
    })
    t.equal(await one.stop(), 0)
    // Ten above that port another test may listen.
    const samePort = { PORT: new URL(one.urls.gateway ?? '').port, CONSOLE_PORT: '0' }
    const again = await run(t, `${folders}/one`, { ...settings, ...samePort })
    await eventually('it is in again', async () => (await servers()).size === 2)
    well(answered(), 'while one machine stops and comes back')
    await two.kill()
    await eventually('the killed one is out', async () => (await servers()).size === 1)
    // Requests go to the other one before that: each is tried again there.
    for (const backend of ['gateways', 'gateways-unwell'])
      await eventually('it is marked down', () => proxyLog.includes(`Server ${backend}/gateway-2 is DOWN`))
    // HAProxy tries again after a second where one machine is left, so an answer may come long after that.
    const before = [...ends]
    await eventually('what was under way then is answered', () =>
      ends.every((count, reader) => count >= (before[reader] ?? 0) + 2),
    )
    // Who is being retried in the moment in which its machine is marked down gets 503 (on-marked-down shutdown-sessions).
    const lost = answered().filter(([what]) => what !== 200)
    t.ok(lost.length === 0 || (lost.length === 1 && lost[0]?.[0] === '503 by HAProxy'), JSON.stringify(lost))
    t.ok((lost[0]?.[1] ?? 0) <= readers.length)
    const stopped = again.stop()
    // It says that it stops, and no other machine is there: what it still serves is requested.
    await pause(3000)
    isReading = false
    await Promise.all(readers)
    well(answered(), 'while the last machine says that it stops')
    t.equal(await stopped, 0)
  },
)
