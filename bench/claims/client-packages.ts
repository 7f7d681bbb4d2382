import { execFileSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scratch } from '../../test/scratch.js'
import { say, table } from '../kit/say.js'

const rivals = ['@ardrive/turbo-sdk@1.43.0', 'arweave', 'tus-js-client', '@helia/verified-fetch']
const packer = fileURLToPath(new URL('../../../bin/pack-client.mjs', import.meta.url))

/** Packages that an install brings, itself among them, by the lock file that npm would write. */
function countOf(spec: string): number {
  const folder = scratch('bench-packages')
  writeFileSync(join(folder, 'package.json'), '{"name":"empty","private":true}')
  const words = ['install', '--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund', spec]
  execFileSync('npm', words, { cwd: folder, stdio: 'ignore' })
  const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, unknown>
  }
  return Object.keys(packages).length - 1
}

/** The tarball's and the unpacked size of what a registry has. */
function sizesOf(spec: string): readonly [packed: number, unpacked: number] {
  const words = ['pack', '--dry-run', '--json', '--ignore-scripts', spec]
  const text = execFileSync('npm', words, { cwd: scratch('bench-sizes'), encoding: 'utf8' })
  const [{ size, unpackedSize }] = JSON.parse(text) as [{ size: number; unpackedSize: number }]
  return [size, unpackedSize]
}

const kb = (bytes: number): string => `${(bytes / 1000).toFixed(0)} kB`

/** How large the client is beside others, and how much it brings along. Needs a registry. */
export async function dependencies(): Promise<void> {
  const tarball = execFileSync(process.execPath, [packer, scratch('bench-pack')], { encoding: 'utf8' }).trim()
  const listing = execFileSync('tar', ['tvzf', tarball], { encoding: 'utf8' }).trim().split('\n')
  const unpacked = listing.reduce((sum, line) => sum + Number(line.split(/\s+/)[2] ?? 0), 0)
  const rows = [['sluice-client', kb(statSync(tarball).size), kb(unpacked), String(countOf(tarball))]]
  for (const rival of rivals) {
    const [packed, whole] = sizesOf(rival)
    rows.push([rival, kb(packed), kb(whole), String(countOf(rival))])
  }
  for (const line of table(['package', 'packed', 'unpacked', 'packages installed'], rows)) say(line)
}
