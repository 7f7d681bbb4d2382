import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadAddon } from '../../native/addon.js'
import { openEnvironment } from '../../src/store/lmdb.js'
import { scratch } from '../scratch.js'

const skip = loadAddon('crash') === undefined && 'native/crash was not built'
const crash = new URL('../../native/crash/crash.js', import.meta.url).href
const mapped = new URL('../../native/mapped/mapped.js', import.meta.url).href
const lmdb = new URL('../../src/store/lmdb.js', import.meta.url).href

/** Runs a program that keeps a note, and resolves with the signal that ended it and with the note. */
async function fallen(code: string, signal?: NodeJS.Signals): Promise<{ by: unknown; note: string }> {
  const note = join(scratch('crash'), 'note')
  const text = `import { keepCrashNote } from ${JSON.stringify(crash)}
    const refused = keepCrashNote(${JSON.stringify(note)})
    if (refused !== undefined) throw new Error(refused)
    ${code}`
  const conditions = process.execArgv.filter((word) => word.startsWith('--conditions='))
  const child = spawn(process.execPath, [...conditions, '--input-type=module', '--eval', text], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  child.stdout.once('data', () => signal !== undefined && child.kill(signal))
  const [exitCode, by] = (await once(child, 'exit')) as [number | null, string | null]
  return { by: by ?? exitCode, note: existsSync(note) ? readFileSync(note, 'utf8') : '' }
}

const wait = `console.log('up'); setInterval(() => 1, 1000)`

t.test('a signal that ends the process leaves its name, and ends it as before', { skip }, async (t) => {
  for (const signal of ['SIGSEGV', 'SIGABRT', 'SIGILL', 'SIGFPE'] as const) {
    t.match(await fallen(wait, signal), { by: signal, note: /^SIG\w+\n$/ }, signal)
  }
  t.match(await fallen('process.abort()'), { by: 'SIGABRT', note: 'SIGABRT\n' })
  t.match(await fallen(wait, 'SIGKILL'), { by: 'SIGKILL', note: '' }, 'a kill leaves none')
  t.match(await fallen(wait, 'SIGTERM'), { by: 'SIGTERM', note: '' })
  t.match(await fallen('process.exitCode = 3'), { by: 3, note: '' })
})

t.test(
  'a fault that WebAssembly is told of is none of the process, and leaves no line',
  { skip },
  async (t) => {
    // (func (export "f") (param i32) (result i32) local.get 0 i32.load), over one page of memory
    const code = `const bytes = Buffer.from(
      'AGFzbQEAAAABBgFgAX8BfwMCAQAFAwEAAQcFAQFmAAAKCQEHACAAKAIACw==', 'base64')
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes))
    const fall = () => {
      try { exports.f(0x7fffffff) } catch (error) {
        if (!(error instanceof WebAssembly.RuntimeError)) throw error
      }
    }
    fall()
    fall()`
    t.match(await fallen(`${code}; process.exitCode = 5`), { by: 5, note: '' })
    t.match(
      await fallen(`${code}; process.abort()`),
      { by: 'SIGABRT', note: 'SIGABRT\n' },
      'a real one does, after it',
    )
  },
)

t.test('in a thread, too', { skip }, async (t) => {
  const code = `import { Worker } from 'node:worker_threads'
    new Worker('process.kill(process.pid, "SIGSEGV")', { eval: true })
    setInterval(() => 1, 1000)`
  t.match(await fallen(code), { by: 'SIGSEGV', note: 'SIGSEGV\n' })
})

t.test('a database that is cut off under its reader is named', { skip }, async (t) => {
  const path = join(scratch('crash'), 'base')
  const environment = openEnvironment(path)
  const table = environment.table('one')
  for (let n = 0; n < 2000; n += 1)
    environment.write(() => table.put(Buffer.from(`key ${n}`), Buffer.alloc(500, n)))
  await environment.close()
  const { by, note } = await fallen(`
    import { truncateSync } from 'node:fs'
    import { openEnvironment } from ${JSON.stringify(lmdb)}
    const environment = openEnvironment(${JSON.stringify(path)})
    const table = environment.table('one')
    table.get(Buffer.from('key 5'))
    truncateSync(${JSON.stringify(join(path, 'data.mdb'))}, 8192)
    environment.refresh()
    for (let n = 0; n < 2000; n += 1) table.get(Buffer.from('key ' + n))`)
  t.equal(by, 'SIGBUS')
  t.equal(note, `SIGBUS in ${join(path, 'data.mdb')}\n`)
})

t.test('a mapped file that is cut off under who reads it in place is named', { skip }, async (t) => {
  const path = join(scratch('crash'), 'segment')
  const { by, note } = await fallen(`
    import { truncateSync, writeFileSync } from 'node:fs'
    import { openMapped } from ${JSON.stringify(mapped)}
    writeFileSync(${JSON.stringify(path)}, Buffer.alloc(1e6, 1))
    const file = openMapped(${JSON.stringify(path)})
    const view = file.view(0, 1e6)
    truncateSync(${JSON.stringify(path)}, 10)
    let sum = 0
    for (let at = 0; at < 1e6; at += 4096) sum += view[at]
    process.exitCode = sum`)
  t.equal(by, 'SIGBUS')
  t.equal(note, `SIGBUS in ${path}\n`)
})

t.test(
  'a content file that is cut off is no fault of the process, and leaves no line',
  { skip },
  async (t) => {
    const path = join(scratch('crash'), 'content')
    const code = `
    import { truncateSync, writeFileSync } from 'node:fs'
    import { openWritten } from ${JSON.stringify(mapped)}
    writeFileSync(${JSON.stringify(path)}, Buffer.alloc(1e6))
    const file = openWritten(${JSON.stringify(path)})
    truncateSync(${JSON.stringify(path)}, 10)
    process.exitCode = file.copy(500_000, Buffer.alloc(100)) ? 1 : 5`
    t.match(await fallen(code), { by: 5, note: '' })
  },
)
