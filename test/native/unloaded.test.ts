/** Addons stay where they are when the last thread that loaded them has ended: what they left behind points into them. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { missingAddons } from '../../native/addon.js'

const skip = missingAddons().length > 0 && 'not all addons were built'
const addon = new URL('../../native/addon.js', import.meta.url).href
const loading = `import(${JSON.stringify(addon)}).then((one) => one.missingAddons())`
const program = `
import { Worker } from 'node:worker_threads'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
await once(new Worker(${JSON.stringify(loading)}, { eval: true }), 'exit')
const mapped = readFileSync('/proc/self/maps', 'utf8').matchAll(/native\\/(\\w+)\\/build\\/.*\\.node$/gm)
console.log([...new Set([...mapped].map(([, name]) => name))].sort().join(' '))
// The first one reaches the handlers that the addons set, and they give way to what was there before them.
setInterval(() => process.kill(process.pid, 'SIGBUS'), 20)
`

t.test('a bus error behind the end of their thread meets a handler that is there', { skip }, (t) => {
  const { stdout, signal } = spawnSync(
    process.execPath,
    [...process.execArgv, '--input-type=module', '--eval', program],
    { encoding: 'utf8', cwd: fileURLToPath(new URL('../../..', import.meta.url)) },
  )
  t.match(stdout, /crash database digest ed25519 mapped schedule secp256k1 server words/)
  t.equal(signal, 'SIGBUS')
  t.end()
})
