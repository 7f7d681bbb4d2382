import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { CrashNote } from '../../src/main/crash-note.js'
import { claimDataFolder } from '../../src/main/data-folder.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { run, sluice } from '../flow/running.js'
import { scratch } from '../scratch.js'

const program = fileURLToPath(new URL('../../../bin/sluice.mjs', import.meta.url))

t.test('the folder is made for this user alone, and one that others may enter is told of', async (t) => {
  const root = join(scratch('data'), 'new', 'deep')
  const warnings: object[] = []
  const log = { warn: (what: object) => void warnings.push(what) } as never
  const claim = await claimDataFolder(root, log)
  t.equal(statSync(root).mode & 0o777, 0o700)
  t.same(warnings, [])
  await claim.release()
  chmodSync(root, 0o755)
  await (await claimDataFolder(root, log)).release()
  t.same(warnings, [{ path: root, mode: '755' }])
})

t.test('what is no folder, or takes no files, is told in plain words', async (t) => {
  const root = scratch('data')
  writeFileSync(join(root, 'file'), '')
  for (const [path, words] of [
    [join(root, 'file'), /it is a file/],
    [join(root, 'file', 'below'), /it is a file/],
    ['/proc/x', /no folder can be made there/],
    ['/proc/x/y', /no folder can be made there/],
    ['/proc', /cannot be used/],
    ['/sys', /cannot be used/],
    ['/dev/null', /it is a file/],
  ] as const) {
    await t.rejects(claimDataFolder(path), words)
  }
})

t.test('a broken database is told with its file and what to do, whichever it is', async (t) => {
  const names =
    'catalog agenda proofs tier moderation names admission payments webhooks webhooks-cached devnet'.split(
      ' ',
    )
  for (const name of names) {
    const root = scratch('data')
    mkdirSync(join(root, name))
    writeFileSync(join(root, name, 'data.mdb'), Buffer.alloc(100_000))
    await t.rejects(claimDataFolder(root), new RegExp(`${name}/data.mdb is broken: .*What to do: .{40}`))
  }
  for (const [name, words] of [
    ['uploads', /data\.mdb and lock\.mdb away, not its folder log/],
    ['ledger-x402', /look on the chain/],
    ['pins', /pinned again/],
    ['name-leases', /put a copy of that folder back: it holds who leased/],
  ] as const) {
    const root = scratch('data')
    mkdirSync(join(root, name))
    writeFileSync(join(root, name, 'data.mdb'), Buffer.alloc(100_000))
    await t.rejects(claimDataFolder(root), words, name)
  }
  const root = scratch('data')
  await openEnvironment(join(root, 'names')).close()
  await (await claimDataFolder(root)).release()
})

/** A database with a leaf that was overwritten, so far down that a start does not look there without a reason. */
async function brokenDeepDown(path: string): Promise<void> {
  const environment = openEnvironment(path)
  const table = environment.table('one')
  for (let round = 0; round < 100; round += 1)
    environment.write(() => {
      for (let n = 0; n < 100; n += 1)
        table.append(Buffer.from(String(10_000 + round * 100 + n)), Buffer.alloc(1000))
    })
  await environment.close()
  const file = join(path, 'data.mdb')
  const bytes = readFileSync(file)
  // Of the pages with this key the last is the one that counts.
  const at = bytes.lastIndexOf('19000')
  bytes.fill(0xab, at - (at % 4096) + 24, at - (at % 4096) + 4096)
  writeFileSync(file, bytes)
}

t.test('after a run that ended by a signal every page is looked at', async (t) => {
  const warnings: string[] = []
  const hear = (_about: object, words: string) => void warnings.push(words)
  const log = { warn: hear, error: hear } as never
  const root = scratch('data')
  const started = async (): Promise<void> => (await claimDataFolder(root, log)).release()
  for (const name of ['catalog', 'segments/index', 'proofs', 'tier', 'agenda'])
    await brokenDeepDown(join(root, name))
  await started()
  t.same(warnings, [], 'not without a reason')

  const note = new CrashNote(root)
  note.add('SIGSEGV')
  await t.rejects(started(), /agenda\/data.mdb is broken: page \d+ was overwritten.*What to do: move/)
  await t.rejects(started(), /agenda\/data.mdb is broken/, 'until something is done about it')
  rmSync(join(root, 'agenda'), { recursive: true })
  await started()
  t.ok(existsSync(join(root, 'catalog.broken')), 'what is fetched anew is set aside')
  t.ok(existsSync(join(root, 'segments', 'index.broken')))
  t.ok(existsSync(join(root, 'proofs.broken')))
  t.ok(existsSync(join(root, 'tier.broken')))
  t.notOk(existsSync(join(root, 'catalog')))
  warnings.length = 0
  await started()
  t.same(warnings, [], 'and is not looked at again')

  mkdirSync(join(root, 'catalog'))
  await brokenDeepDown(join(root, 'catalog'))
  mkdirSync(join(root, 'catalog', 'runs'))
  writeFileSync(join(root, 'catalog', 'runs', 'ids-1'), '')
  note.add('catalog: ended with code 1')
  await t.rejects(started(), /catalog\/data.mdb is broken/, 'an index may have been imported')
  rmSync(join(root, 'catalog', 'runs', 'ids-1'))
  mkdirSync(join(root, 'catalog', 'segments'))
  writeFileSync(join(root, 'catalog', 'segments', 'segment-1'), '')
  note.add('catalog: ended with code 1')
  await t.rejects(started(), /catalog\/data.mdb is broken/, 'its rows may be in segments')
})

t.test(
  'a database that looks sound and ends the program twice is refused until it is another one',
  async (t) => {
    const root = scratch('data')
    const started = async (): Promise<void> => (await claimDataFolder(root)).release()
    const file = join(root, 'names', 'data.mdb')
    await openEnvironment(join(root, 'names')).close()
    const line = `SIGSEGV in ${file}`
    const note = new CrashNote(root)
    note.add(line)
    await started()
    await started()
    note.add(line)
    await started()
    note.add(line)
    for (let tries = 0; tries < 3; tries += 1)
      await t.rejects(started(), /names\/data.mdb is broken: the program ended twice by a signal inside it/)
    rmSync(join(root, 'names'), { recursive: true })
    await openEnvironment(join(root, 'names')).close()
    await started()
    note.add(line)
    await started()
  },
)

t.test('commands say the same', async (t) => {
  const root = scratch('data')
  for (const name of ['names', 'moderation', 'catalog']) {
    mkdirSync(join(root, name))
    writeFileSync(join(root, name, 'data.mdb'), 'no database\n'.repeat(1000))
  }
  for (const words of [
    ['names', 'list'],
    ['moderation', 'list'],
    ['index', 'check'],
    ['index', 'compact'],
  ]) {
    const { code, err } = await sluice(words, { DATA_PATH: root })
    t.equal(code, 1, words.join(' '))
    t.match(err, /data\.mdb is broken/)
  }
})

t.test('a second program on the same folder ends by itself, and the first goes on', async (t) => {
  const root = scratch('data')
  const first = await run(t, root, { SERVICES: 'gateway' })
  const { gateway = '' } = first.urls
  const env = { PATH: process.env.PATH ?? '', PORT: '0', DEVNET_PORT: '0', DEVNET_SEED: 'false' }
  for (let round = 0; round < 2; round += 1) {
    const second = spawn(process.execPath, [program, 'start'], {
      env: { ...env, DATA_PATH: root },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let err = ''
    second.stderr.on('data', (text: Buffer) => {
      err += text.toString()
    })
    const [code] = (await once(second, 'close')) as [number]
    t.equal(code, 1)
    t.match(err, /Could not start: another sluice is running on /)
    t.equal((await fetch(`${gateway}/gateway/livez`)).status, 200)
  }
  t.equal(await first.stop(), 0)
  // After a kill nothing is in the way of the next one.
  await (await run(t, root, { SERVICES: 'gateway' })).kill()
  const last = await run(t, root, { SERVICES: 'gateway' })
  t.equal((await fetch(`${last.urls.gateway}/gateway/livez`)).status, 200)
  t.equal(await last.stop(), 0)
})

t.test('one program uses a folder, whichever services and commands are meant', async (t) => {
  const root = scratch('data')
  const services = ['gateway', 'upload', 'payment', 'gateway,upload', 'payment,upload']
  const environment = (names: string) => ({
    SERVICES: names,
    DEVNET_SEED: 'false',
    UPLOAD_PORT: '0',
    PAYMENT_PORT: '0',
    PORT: '0',
    DEVNET_PORT: '0',
    CONSOLE_PORT: '0',
    DATA_PATH: root,
  })
  const first = await run(t, root, environment('payment'))
  for (const names of services) {
    const { code, err } = await sluice(['start'], environment(names))
    t.equal(code, 1, names)
    t.match(err, /another sluice is running on /, names)
  }
  await openEnvironment(join(root, 'catalog')).close()
  for (const words of [
    ['index', 'compact'],
    ['import', root],
  ]) {
    const { code, out, err } = await sluice(words, environment('gateway'))
    t.not(code, 0, words.join(' '))
    t.match(out + err, /another sluice is running on /, words.join(' '))
  }
  t.equal(await first.stop(), 0)
})

t.test('an embedded chain has one node', async (t) => {
  const root = scratch('data')
  const first = await run(t, root, { SERVICES: 'gateway' })
  const second = await sluice(['devnet', '--port', '0'], { DATA_PATH: root })
  t.not(second.code, 0)
  t.match(second.out + second.err, /another sluice is running on /)
  t.equal(await first.stop(), 0)
})

t.test('a start that cannot be ends by itself, with one line that names the setting', async (t) => {
  const root = scratch('data')
  const wrong: [string, string][] = [
    ['DATA_PATH', '/proc/x'],
    ['HTTPSIG_KEY_FILE', '/proc/x'],
    ['HTTPSIG_KEY_FILE', '/proc/x/y/z'],
    ['HTTPSIG_KEY_FILE', '/dev/zero'],
    ['OBSERVER_KEYPAIR_PATH', '/dev/zero'],
    ['ADMIN_API_KEY_FILE', '/dev/zero'],
    ['ADMIN_API_KEY_FILE', root],
  ]
  for (const [name, value] of wrong) {
    const env = { PATH: process.env.PATH ?? '', PORT: '0', DEVNET_PORT: '0', DEVNET_SEED: 'false' }
    const child = spawn(process.execPath, [program, 'start'], {
      env: { ...env, DATA_PATH: join(root, 'data'), [name]: value },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let err = ''
    child.stderr.on('data', (text: Buffer) => {
      err += text.toString()
    })
    const [code] = (await once(child, 'close')) as [number]
    t.equal(code, 1, `${name}=${value}`)
    t.match(err, new RegExp(`Could not start: .*${name}: .*${value}`))
  }
})
