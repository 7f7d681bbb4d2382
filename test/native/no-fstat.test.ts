/** A file of which the system says nothing is an error of the disk, and no folder. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { mappedBy } from '../../native/mapped/mapped.js'
import { scratch } from '../scratch.js'
import { preloading } from './preload.js'

const env = mappedBy === 'addon' ? preloading('no-fstat') : undefined
const addon = new URL('../../native/mapped/mapped.js', import.meta.url).href

t.test('such a file is not mapped, and the reason is told', { skip: env === undefined }, (t) => {
  const path = join(scratch('no-fstat'), 'file.broken')
  writeFileSync(path, 'bytes')
  const program = `
const { openAddon } = await import(${JSON.stringify(addon)})
try {
  openAddon(${JSON.stringify(path)})
} catch (error) {
  console.log(error.message)
}`
  const words = [...process.execArgv, '--input-type=module', '--eval', program]
  const { stdout, stderr } = spawnSync(process.execPath, words, { env, encoding: 'utf8' })
  t.match(stdout, 'Input/output error', stderr)
  t.end()
})
