import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Folder of the sources of the bench, seen from where it runs (dist/bench/kit). */
export const benchFolder = fileURLToPath(new URL('../../../bench', import.meta.url))
/** Results of runs, one file each, and the page made of them. */
export const resultsFolder = join(benchFolder, 'results')
/** Contents, logs and data folders of a run; what is made once stays for the next run. */
export const workFolder = join(resultsFolder, '.work')

/** Takes the work folder for this run, until it ends. Throws where another run has it. */
export function takeWorkFolder(): void {
  mkdirSync(workFolder, { recursive: true })
  const path = join(workFolder, 'pid')
  const other = existsSync(path) ? readFileSync(path, 'utf8') : ''
  if (other !== '' && existsSync(`/proc/${other}`))
    throw new Error(`another bench runs here: process ${other}`)
  writeFileSync(path, String(process.pid))
  process.once('exit', () => rmSync(path, { force: true }))
}

/** A program of the bench as it was built. `path`: from dist/bench, ends with .js. */
export function programPath(path: string): string {
  return fileURLToPath(new URL(`../${path}`, import.meta.url))
}

/** Words for Node that run the `sluice` command as its own first line does. */
export const sluiceWords = ['--single-threaded-gc', programPath('../../bin/sluice.mjs')] as const

/** An empty folder of this name below the work folder; what was there is removed. */
export function emptyFolder(name: string): string {
  const path = join(workFolder, name)
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path, { recursive: true })
  return path
}

/** What the files below a folder take on the disk, MiB; files that go meanwhile are not counted. */
export function diskMb(folder: string): number {
  let blocks = 0
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    blocks += lstatSync(join(folder, name), { throwIfNoEntry: false })?.blocks ?? 0
  }
  return (blocks * 512) / 2 ** 20
}
