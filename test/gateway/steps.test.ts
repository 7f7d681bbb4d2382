/** The table of steps against what runs: their order, where they stand, and the statuses with which each ends. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { Admission, Denial } from '../../src/admission/admission-port.js'
import { type Blocking, Guard } from '../../src/gateway/guard.js'
import type { Plan, Planned } from '../../src/gateway/plan.js'
import { type RequestStep, type StepName, steps } from '../../src/gateway/steps.js'
import { statusOf } from '../../src/http/status.js'
import type { BlockList } from '../../src/moderation/moderation-messages.js'
import type { Name, Names } from '../../src/names/names-port.js'
import { someId } from '../source/rig.js'
import { askAt, type Stage, stage } from './rig.js'
import { type WatchedSteps, watchSteps } from './watched-steps.js'

const site = someId()
const blocked = new Set<string>()

let isReadable = true
const blocks: BlockList = {
  get version() {
    return blocked.size
  },
  get isReadable() {
    return isReadable
  },
  mayBlockContent: true,
  mayBlockHashes: false,
  mayBlockSize: () => false,
  blocksId: (id) => blocked.has(id),
  blocksDigest: () => false,
  blocksName: (label) => blocked.has(label),
}

const resolved = (name: Name) =>
  name.full === 'site' ? ({ id: site, ttlSeconds: 60, name, resolvedAtMs: 0 } as const) : 'absent'
const names: Names = { known: resolved, resolve: (name) => Promise.resolve(resolved(name)) }

const hosts = {
  rootHosts: ['gw.example'],
  protocol: 'http',
  ownPort: 3000,
  sandboxBareHosts: false,
  apexNames: [],
  apexMaxSeconds: 3600,
  enforceUndernameLimit: true,
} as const

/** Only bodies of 77 bytes are too much. */
const admission: Admission = {
  freeDelayMs: () => 0,
  admit: ({ bytes }) =>
    bytes === 77
      ? { status: 429, contentType: 'text/plain', lines: '', body: 'too much', reason: 'ip' }
      : { lines: '', returnUnsent: () => undefined },
  takeFirst: () => true,
}

interface Scene {
  readonly on: Stage
  readonly watched: WatchedSteps
  /** Asks, and compares the steps and the status with the table. */
  takes(path: string, status: number, expected: string, headers?: Record<string, string>): Promise<void>
}

async function scene(t: Test, seen: Set<string>): Promise<Scene> {
  const guard = new Guard(blocks, { attributes: () => undefined }, 100)
  const on = await stage({ parts: { guard, admission, hostNames: { names, hosts } } })
  const watched = watchSteps()
  t.teardown(() => on.close())
  t.teardown(() => watched.close())
  return {
    on,
    watched,
    async takes(path, status, expected, headers = {}) {
      watched.taken()
      // The response cache is off there: each request goes through the steps.
      const answered = await askAt(on.stepwiseUrl, path, 'GET', headers)
      const [ran = []] = watched.taken()
      // A file that was just written may be checked once more.
      const once = ran.join(' ').replace(/ check locate(?= locate)| check locate (guard|manifest)/g, '')
      t.same(once, expected, path)
      t.equal(answered.status, status, path)
      const last: RequestStep = steps[ran.at(-1) ?? 'route']
      t.ok(last.answers.includes(status), `${ran.at(-1)} may answer ${status}`)
      for (const name of ran) seen.add(name)
    },
  }
}

t.test('requests go through the steps of the table, in its order', async (t) => {
  const seen = new Set<string>()
  const { on, takes, watched } = await scene(t, seen)
  const [stored, fetched, denied, manifest] = [someId(), someId(), someId(), someId()]
  const body = randomBytes(500)
  await on.keep(stored, body)
  await on.keep(denied, randomBytes(77))
  await on.keep(site, body, { contentType: 'text/plain' })
  on.has.set(fetched, { body })
  const text = JSON.stringify({
    manifest: 'arweave/paths',
    version: '0.1.0',
    paths: { page: { id: stored } },
  })
  await on.keep(manifest, Buffer.from(text), { contentType: 'application/x.arweave-manifest+json' })
  const whole = 'plan admit head send'

  await takes(`/${stored}`, 200, `route locate guard ${whole}`)
  await takes(`/${stored}`, 200, `route locate guard ${whole}`)
  await takes(`/raw/${stored}`, 206, `route locate guard ${whole}`, { range: 'bytes=1-9' })
  await takes(`/raw/${stored}`, 416, 'route locate guard plan', { range: 'bytes=900-' })
  await takes(`/raw/${stored}`, 412, 'route locate guard plan', { 'if-match': '"other"' })
  await takes(`/raw/${stored}`, 400, 'route locate guard plan', { range: 'bytes' })
  await takes(`/raw/${stored}`, 304, `route locate guard ${whole}`, { 'if-none-match': '*' })
  await takes(`/raw/${denied}`, 429, 'route locate guard plan admit')
  await takes(`/${fetched}`, 200, `route locate guard bring ${whole}`)
  await takes(`/${someId()}`, 404, 'route locate guard bring')
  await takes('/nothing', 404, 'route')
  await takes(`/${manifest}/page`, 200, `route locate guard manifest locate guard ${whole}`)
  await takes(`/${manifest}/page`, 200, `route locate guard manifest locate guard ${whole}`)
  await takes(`/${manifest}/other`, 404, 'route locate guard manifest')
  await takes('/', 200, `route name locate guard ${whole}`, { host: 'site.gw.example' })
  await takes('/', 404, 'route name', { host: 'other.gw.example' })
  blocked.add(stored)
  blocked.add('site')
  await takes(`/${stored}`, 451, 'route locate guard')
  await takes(`/${manifest}/page`, 451, 'route locate guard manifest locate guard')
  await takes('/', 451, 'route name', { host: 'site.gw.example' })
  isReadable = false
  await takes(`/${stored}`, 503, 'route locate guard')
  isReadable = true

  t.same(watched.wrong, [])
  t.same([...seen].sort(), Object.keys(steps).sort(), 'each step of the table ran')
})

/** The statuses of a step as a type. */
type Answers<Name extends StepName> = (typeof steps)[Name]['answers'][number]
type Same<One, Other> = [One] extends [Other] ? ([Other] extends [One] ? true : false) : false

t.test('the table has the statuses that the types of the steps admit', async (t) => {
  // A status that one side lacks fails in the type checker.
  const same: {
    guard: Same<Answers<'guard'>, Blocking['status']>
    plan: Same<Answers<'plan'>, Extract<Plan, { variant: 'refused' }>['status']>
    admit: Same<Answers<'admit'>, Denial['status'] | 499>
    send: Same<Answers<'send'>, Planned['status']>
  } = { guard: true, plan: true, admit: true, send: true }
  t.ok(same)
  const { answers }: RequestStep = steps.bring
  // Of sources (`Source`), and of the first token.
  for (const reason of ['unknown', 'unsatisfiable', 'blocked', 'upstream', 'forged', 'busy', 'late'] as const)
    t.ok(answers.includes(statusOf[reason]), reason)
  for (const status of steps.admit.answers) t.ok(answers.includes(status), `${status} of the first token`)
})

t.test('each step stands where the table says, in the order of the picture', async (t) => {
  const root = new URL('../../../', import.meta.url)
  const architecture = readFileSync(new URL('docs/ARCHITECTURE.md', root), 'utf8')
  const picture = architecture.slice(
    architecture.indexOf('## One request'),
    architecture.indexOf('## One transfer'),
  )
  const order = Object.keys(steps) as StepName[]
  let at = 0
  for (const [index, name] of order.entries()) {
    const { file, after }: RequestStep = steps[name]
    t.ok(existsSync(new URL(file, root)), file)
    const drawn = picture.indexOf(` ${name} .`, at)
    t.ok(drawn > 0, `${name} is drawn behind the steps before it`)
    t.ok(picture.slice(drawn).split('\n', 1)[0]?.includes(file), `${name} is drawn with ${file}`)
    at = drawn
    t.ok(after.every((one) => one in steps))
    t.ok(index === 0 || after.some((one) => order.indexOf(one as StepName) < index), `${name} can be reached`)
  }
})
