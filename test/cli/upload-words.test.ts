/** What commands that upload take from a machine that is not theirs: its settings, its home, and the secrets that lie about. */
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { listSettings, readClientConfig } from '../../config/read.js'
import { forgiving } from '../../src/cli/upload-memory.js'
import { readFolder } from '../../src/client/node/files.js'
import { memoryStore } from '../../src/client/resume-store.js'
import { parseItemHeader } from '../../src/format/item.js'
import { isRefusal } from '../../src/format/refusal.js'
import { info, receiptOf, serving } from '../client/rig.js'
import { sluice } from '../flow/running.js'
import { scratch } from '../scratch.js'

interface Place {
  readonly folder: string
  readonly words: readonly string[]
  readonly url: string
  /** Payloads that were uploaded. */
  readonly sent: string[]
}

/** A service that takes everything for nothing, and a key beside it. */
async function placeOf(t: Test, charged = '0'): Promise<Place> {
  const sent: string[] = []
  const { url } = await serving(t, ({ method, path, body }) => {
    if (path === '/v1/info')
      return {
        json: {
          ...(info.json as object),
          creditsPage: 'credits',
          freeUploadLimitBytes: charged === '0' ? 1e6 : 0,
        },
      }
    if (path.startsWith('/v1/price/')) return { json: { winc: '3247841', adjustments: [] } }
    if (path === '/v1/rates') return { json: { winc: '1000000', fiat: { usd: 0.5 } } }
    if (path.startsWith('/v1/account/balance/')) return { json: { winc: '47841' } }
    if (path === '/v1/account/free') return { json: { bytesRemaining: null } }
    if (method !== 'POST' || !path.startsWith('/v1/tx')) return undefined
    const header = parseItemHeader(body)
    if (header === 'more' || isRefusal(header)) return { status: 400, text: 'no item' }
    if (charged !== '0') return { status: 402, text: 'Insufficient balance' }
    sent.push(body.subarray(header.headerSize).toString())
    return { json: receiptOf(body, charged) }
  })
  const folder = t.testdir({ 'note.txt': 'a note', home: {} })
  writeFileSync(join(folder, 'key'), '31'.repeat(32), { mode: 0o600 })
  chmodSync(join(folder, 'key'), 0o600)
  const words = ['--upload', url, '--payment', url, '--gateway', url, '--key', join(folder, 'key')]
  return { folder, words, url, sent }
}

t.test('settings of the services do not stop who uploads', async (t) => {
  const { folder, words, url, sent } = await placeOf(t)
  const own = new Set([
    'WALLET_KEY',
    'DRIVE_PASSWORD',
    'CLIENT_UPLOAD_URL',
    'CLIENT_PAYMENT_URL',
    'CLIENT_GATEWAY_URL',
  ])
  const others = listSettings()
    .map(({ env }) => env)
    .filter((name) => !own.has(name))
  const environment = {
    HOME: join(folder, 'home'),
    ...Object.fromEntries(others.map((name) => [name, 'x\ty'])),
    GATEWAY_URL: 'x',
    UPLOAD_DIR: 'x',
    PORT: 'http',
  }
  t.match(await sluice(['price', '100', ...words], environment), { code: 0, out: /100 bytes: / })
  t.match(await sluice(['put', join(folder, 'note.txt'), ...words], environment), { code: 0 })
  t.strictSame(sent, ['a note'])
  const got = await sluice(['get', 'A'.repeat(43), ...words], environment)
  t.equal(got.code, 3, got.err)
  t.notMatch(
    (await sluice(['verify', 'A'.repeat(43), '--gateway', url, '--node', url], environment)).err,
    /PORT/,
  )

  const places = { CLIENT_UPLOAD_URL: url, CLIENT_PAYMENT_URL: url, CLIENT_GATEWAY_URL: url }
  const key = ['--key', join(folder, 'key')]
  t.match(
    await sluice(['put', join(folder, 'note.txt'), ...key], { HOME: join(folder, 'home'), ...places }),
    { code: 0 },
  )
  t.strictSame(readClientConfig({ CLIENT_UPLOAD_URL: 'x' }), ['CLIENT_UPLOAD_URL: is not an address: x'])
})

t.test('where no memory can be kept an upload goes on, and says so', async (t) => {
  const { folder, words, sent } = await placeOf(t)
  const put = ['put', join(folder, 'note.txt'), ...words]
  writeFileSync(join(folder, 'file'), '')
  const places = [{ HOME: join(folder, 'file') }, { HOME: folder, XDG_STATE_HOME: '/dev/null/none' }]
  for (const environment of places) {
    const { code, err } = await sluice(put, environment)
    t.equal(code, 0, err)
    t.match(err, /^no memory of uploads: .*: E[A-Z]+; an upload that breaks off begins anew/m)
  }
  t.equal(sent.length, 2)
  const there = { HOME: '/dev/null', XDG_STATE_HOME: join(folder, 'state') }
  const kept = await sluice(['deploy', join(folder, 'home'), ...words], there)
  t.equal(kept.code, 2, 'an empty folder')
  writeFileSync(join(folder, 'home/a'), 'a')
  const deployed = await sluice(['deploy', join(folder, 'home'), ...words], there)
  t.equal(deployed.code, 0, deployed.err)
  t.notMatch(deployed.err, /no memory/)
  t.ok(readdirSync(join(folder, 'state/sluice/uploads')).length > 0)
  // A file of many keys whose disk has lost something.
  writeFileSync(join(folder, 'state/sluice/uploads/many-0'), '{"half')
  const damaged = await sluice(['deploy', join(folder, 'home'), ...words], there)
  t.match(damaged, { code: 0, err: /no memory of uploads: a file of it is damaged/ })
})

t.test(
  'who has no home and no right to make one uploads, too',
  { skip: process.getuid?.() !== 0 },
  async (t) => {
    const { folder, words, sent } = await placeOf(t)
    const program = new URL('../../../bin/sluice.mjs', import.meta.url).pathname
    for (const name of ['', 'note.txt']) chmodSync(join(folder, name), 0o755)
    const line = [
      '--reuid',
      '54321',
      '--clear-groups',
      '--',
      process.execPath,
      program,
      'put',
      join(folder, 'note.txt'),
    ]
    const environment = { PATH: process.env.PATH ?? '', WALLET_KEY: '31'.repeat(32) }
    const { code, err } = await new Promise<{ code: number; err: string }>((resolve) => {
      execFile('setpriv', [...line, ...words.slice(0, -2)], { env: environment }, (error, _, err) =>
        resolve({ code: error === null ? 0 : Number(error.code), err }),
      )
    })
    if (/cannot open|EACCES.*sluice\.mjs|MODULE_NOT_FOUND/.test(err))
      return t.comment('this checkout is its owner’s alone')
    t.equal(code, 0, err)
    t.match(err, /no memory of uploads: this user has no home/)
    t.equal(sent.length, 1)
  },
)

t.test('a store that fails remembers in memory from then on', async (t) => {
  const faults: string[] = []
  const below = memoryStore()
  await below.set('before', 'kept')
  let isFull = false
  const full = async (): Promise<never> => {
    throw Object.assign(new Error('full'), { code: 'ENOSPC', syscall: 'write', path: '/x' })
  }
  const store = forgiving(
    {
      ...below,
      set: (key, value) => (isFull ? full() : below.set(key, value)),
      setMany: full,
      getMany: async (keys) => new Map(keys.map((key) => [key, 'of the file'])),
    },
    (why) => faults.push(why),
  )
  await store.set('one', '1')
  isFull = true
  await Promise.all([store.set('two', '2'), store.set('three', '3')])
  await store.setMany?.(new Map([['four', '4']]))
  t.strictSame(faults, ['/x: ENOSPC'], 'said once')
  t.equal(await store.get('two'), '2')
  t.strictSame(await store.getMany?.(['four', 'five']), new Map([['four', '4']]))
  await store.delete('two')
  t.equal(await store.get('two'), undefined)
  const broken = forgiving(
    { ...below, get: async () => Promise.reject(new TypeError('a bug')) },
    () => undefined,
  )
  await t.rejects(broken.get('x'), TypeError)
})

t.test('secrets are left out of a folder unless somebody asks for them', async (t) => {
  const { folder, words, sent } = await placeOf(t)
  const site = join(folder, 'site')
  for (const path of ['.git', 'sub/.ssh', '.well-known', 'drafts', 'sub/deep'])
    mkdirSync(join(site, path), { recursive: true })
  const files = {
    'index.html': 'page',
    '.git/config': 'token',
    '.env': 'password',
    'sub/.ssh/id': 'private',
    'sub/.npmrc': 'secret',
    '.well-known/security.txt': 'contact',
    'drafts/one.html': 'draft',
    'sub/notes.tmp': 'scratch',
    'sub/deep/keep.tmp': 'kept',
    '.sluiceignore': '# not yet\ndrafts/\n*.tmp\n!keep.tmp\n',
  }
  for (const [path, text] of Object.entries(files)) writeFileSync(join(site, path), text)
  writeFileSync(join(site, 'key.txt'), '31'.repeat(32), { mode: 0o600 })
  chmodSync(join(site, 'key.txt'), 0o600)
  const found = await readFolder(site, { never: [join(site, 'key.txt')] })
  t.strictSame(
    found.files.map(({ path }) => path),
    ['.well-known/security.txt', 'index.html', 'sub/deep/keep.tmp'],
  )
  t.strictSame(found.leftOut, [
    '.env: hidden, because its name begins with a dot',
    '.git: hidden, because its name begins with a dot',
    'drafts: by .sluiceignore',
    'key.txt: the key that signs',
    'sub/.npmrc: hidden, because its name begins with a dot',
    'sub/.ssh: hidden, because its name begins with a dot',
    'sub/notes.tmp: by .sluiceignore',
  ])
  const environment = { HOME: join(folder, 'home') }
  const key = ['--key', join(site, 'key.txt')]
  const places = words.slice(0, -2)
  const deployed = await sluice(['deploy', site, '--json', ...places, ...key], environment)
  t.equal(deployed.code, 0, deployed.err)
  t.match(deployed.err, 'left out: .git: hidden')
  t.match(deployed.err, 'left out: key.txt: the key that signs')
  for (const secret of ['password', 'private', 'secret', 'token', '31'.repeat(32)])
    t.notOk(sent.includes(secret))
  t.strictSame(sent.slice(0, 3).sort(), ['contact', 'kept', 'page'])
  sent.length = 0
  const all = await sluice(['deploy', site, '--include-hidden', '--json', ...places, ...key], environment)
  t.equal(all.code, 0, all.err)
  for (const secret of ['password', 'private', 'secret', 'token']) t.ok(sent.includes(secret), secret)
  t.match(await sluice(['put', join(site, 'key.txt'), ...places, ...key], environment), {
    code: 2,
    err: /is the key/,
  })
})

t.test('a key is made, shown and imported where only its owner reads it', async (t) => {
  const { words } = await placeOf(t)
  // Outside of this checkout: a key is not made inside a repository.
  const folder = scratch('keys')
  mkdirSync(join(folder, 'home'))
  writeFileSync(join(folder, 'note.txt'), 'a note')
  writeFileSync(join(folder, 'key'), '31'.repeat(32), { mode: 0o600 })
  const environment = { HOME: join(folder, 'home') }
  const file = join(folder, 'home/.config/sluice/key')
  const run = (...given: string[]) => sluice(['key', ...given], environment)
  t.match(await run('show'), { code: 3, err: /there is no key/ })
  const made = await run('new', '--json')
  t.equal(made.code, 0, made.err)
  const { address } = JSON.parse(made.out) as { address: string }
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(statSync(join(folder, 'home/.config/sluice')).mode & 0o777, 0o700)
  t.notMatch(made.out + made.err, readFileSync(file, 'utf8').trim(), 'the key itself is never shown')
  t.match(await run('show'), { code: 0, out: `${address}\nethereum\n${file}\n` })
  const before = readFileSync(file, 'utf8')
  t.match(await run('new'), { code: 1, err: /is there already/ })
  t.match(await run('import', join(folder, 'key')), { code: 1, err: /is there already/ })
  t.equal(readFileSync(file, 'utf8'), before)
  const used = await sluice(['put', join(folder, 'note.txt'), '--json', ...words.slice(0, -2)], environment)
  t.equal(used.code, 0, used.err)

  const other = join(folder, 'other')
  t.match(await run('import', join(folder, 'key'), '--file', other), { code: 0 })
  t.equal(statSync(other).mode & 0o777, 0o600)
  for (const kind of ['arweave', 'solana']) {
    const place = join(folder, kind)
    t.equal((await run('new', '--kind', kind, '--file', place)).code, 0)
    t.match(await run('show', '--key', place), { code: 0, out: kind })
  }
  t.match(await run('import', join(folder, 'note.txt'), '--file', join(folder, 'x')), {
    code: 2,
    err: /the key is no/,
  })
  t.notOk(existsSync(join(folder, 'x')))
  spawnSync('git', ['init', '-q', join(folder, 'repository')])
  mkdirSync(join(folder, 'repository/.git'), { recursive: true })
  t.match(await run('new', '--file', join(folder, 'repository/sub/key')), {
    code: 2,
    err: /inside the git repository/,
  })
  t.match(await run('new', '--kind', 'x'), { code: 2 })
})

t.test('what is free is called free; what is missing is said in numbers, with a way to buy it', async (t) => {
  const free = await placeOf(t)
  const environment = { HOME: join(free.folder, 'home') }
  const put = await sluice(['put', join(free.folder, 'note.txt'), ...free.words], environment)
  t.match(put, { code: 0, out: /^free$/m })
  t.notMatch(put.out, /winc/)
  const poor = await placeOf(t, '3247841')
  const refused = await sluice(['put', join(poor.folder, 'note.txt'), ...poor.words], environment)
  t.equal(refused.code, 1)
  t.match(refused.err, '6 bytes: at most 0.000003247841 credits ($1.62)')
  t.match(refused.err, /Insufficient balance: 0\.0000032 credits are missing, it costs 0\.000003247841/)
  writeFileSync(join(poor.folder, 'home/a'), 'a')
  const deployed = await sluice(['deploy', join(poor.folder, 'home'), ...poor.words], environment)
  t.equal(deployed.code, 1)
  t.match(
    deployed.err,
    /0\.000006447841 credits \(\$3\.22\) are missing: it costs 0\.000006495682 credits \(\$3\.25\)/,
  )
  t.match(deployed.err, `buy them at ${poor.url}/credits?address=0x`)
  t.match(await sluice(['balance', ...poor.words], environment), { out: '0.000000047841 credits ($0.02)' })
})
