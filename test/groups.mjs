// Which test files run in one process, and what each of them did there.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const tests = join(root, 'dist/test/')

/** So many files of one room at most: a process that dies costs the results of the files behind it, which then run once more. */
const filesMax = 12

/**
 * What a file, or a part of the tests that it loads, does where it needs a process of its own: it starts programs, ends or measures its
 * process, replaces what all others find, or has something done at its end.
 */
const own = new RegExp(
  [
    /node:(child_process|cluster|inspector|v8|vm|worker_threads)\b|'(@duckdb\/node-api|esbuild|piscina|playwright-core)'/,
    /\bprocess\.(exit|on|once|chdir|kill|argv|exitCode|execArgv|memoryUsage|resourceUsage|cpuUsage|hrtime)\b/,
    /\bprocess\.env\.\w+ ?=[^=]|delete process\.env|globalThis\.\w+ ?=[^=]|\bgc\(|new Worker\(/,
    /\/proc\/self|monitorEventLoopDelay|PerformanceObserver/,
    /^t\.(teardown|before|after|beforeEach|afterEach|setTimeout|jobs|plan|testdir|bailout)\b/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'm',
)
/**
 * A function of the file, without a `t` of its own, that has something done at the end of all tests: with the first of these tap takes
 * all tests for ended.
 */
function usesRoot(text) {
  return text.split(/^(?=[a-z])/m).some((part) => {
    const [head] = part.split('\n')
    return /\bt\.(teardown|after|before)\b/.test(part) && !/\bt\b/.test(head) && !/\(t\b/.test(part)
  })
}

/** Folders of `test/scratch.ts` go at the end of the process, whichever file they are of. */
const harmless = /process\.once\('exit'/g

/** Of compiled parts of the tests by path: whether they need a process of their own. */
const known = new Map()

/** Whether this file, or one that it loads, does any of that. */
function needsOwn(path) {
  const found = known.get(path)
  if (found !== undefined) return found
  // Parts that load each other.
  known.set(path, false)
  const text = readFileSync(path, 'utf8')
  const loaded = [...text.matchAll(/(?:from|import|import\()\s*['"](\.[^'"]+)['"]/g)]
    .map(([, name]) => join(dirname(path), name))
    .filter((part) => part.startsWith(tests) && existsSync(part))
  const needs = own.test(text.replaceAll(harmless, '')) || usesRoot(text) || loaded.some(needsOwn)
  known.set(path, needs)
  return needs
}

/** Whether the file may run beside others in one process. */
function isShared(file, alone) {
  const path = join(root, file)
  if (alone.has(file) || !existsSync(path)) return false
  return /from ['"]tap['"]/.test(readFileSync(path, 'utf8')) && !needsOwn(path)
}

/** Files in groups that run in one process each; most groups are one file. The order is that of their first files. */
export function groupsOf(files, alone) {
  const groups = []
  const open = new Map()
  for (const file of files) {
    const room = isShared(file, alone) ? dirname(file) : undefined
    const group = room === undefined ? undefined : open.get(room)
    if (group !== undefined && group.length < filesMax) {
      group.push(file)
      continue
    }
    const next = [file]
    groups.push(next)
    if (room !== undefined) open.set(room, next)
  }
  return groups
}

/**
 * What each file of a group did: its lines and times, by its name, and the lines of what did not end. See `test/together.mjs` for the
 * lines.
 */
export function partsOf(lines) {
  const parts = new Map()
  let from = 1 + lines.findIndex((line) => /^ok \d+ - begin( |$)/.test(line))
  for (const [index, line] of lines.entries()) {
    const [, file] = /^(?:not )?ok \d+ - end of (\S+)/.exec(line) ?? []
    if (file === undefined) continue
    const part = lines.slice(from, index + 1)
    from = index + 1
    const took = part.map((line) => /# took (\d+) ms, (\d+) ms of/.exec(line)).find((match) => match !== null)
    parts.set(file, { lines: part, ms: Number(took?.[1] ?? 0), seconds: Number(took?.[2] ?? 0) / 1000 })
  }
  return { parts, rest: lines.slice(from) }
}
