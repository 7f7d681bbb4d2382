import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { scratch } from '../scratch.js'
import { stranger } from './stranger.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** What a registry that cannot be reached looks like in the words of npm. */
const isAway = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET|E50\d|E429/

function npm(folder: string, words: readonly string[]): { code: number | null; out: string; err: string } {
  // `npm pack` compiles all addons for two processors: with optimizations that takes 80 s of processor time.
  const env = { ...process.env, CXXFLAGS: '-O0' }
  const run = spawnSync('npm', words, { cwd: folder, encoding: 'utf8', timeout: 900_000, env })
  return { code: run.status, out: run.stdout, err: run.stderr }
}

/** The sources and the addons of this machine, so that packing here disturbs no other test; the package builds its own addons. */
function copyOfSources(): string {
  const folder = scratch('pack')
  const kept = /^(bin|config|deploy|native|src|workers|package\.json|tsconfig.*\.json|.*\.md|LICENSE)$/
  for (const name of readdirSync(root).filter((name) => kept.test(name)))
    cpSync(join(root, name), join(folder, name), {
      recursive: true,
      preserveTimestamps: true,
      filter: (path) => !/native\/\w+\/prebuilt$/.test(path),
    })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

interface Lock {
  readonly packages: Record<string, { readonly dev?: boolean }>
}

/** Puts the package where npm would, with the dependencies of this checkout: for machines that reach no registry. */
function installByHand(folder: string, tarball: string): void {
  const place = join(folder, 'node_modules/sluice')
  mkdirSync(place, { recursive: true })
  spawnSync('tar', ['xzf', tarball, '--strip-components=1', '-C', place])
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
  for (const [path, { dev }] of Object.entries(packages)) {
    if (path === '' || dev === true || path.lastIndexOf('node_modules/') > 0) continue
    if (!existsSync(join(root, path))) continue
    mkdirSync(join(folder, path, '..'), { recursive: true })
    symlinkSync(join(root, path), join(folder, path))
  }
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  symlinkSync('../sluice/bin/sluice.mjs', join(folder, 'node_modules/.bin/sluice'))
}

/** Resolves with the addresses once the program is up. */
async function started(child: ChildProcess): Promise<Record<string, string>> {
  const ready = new Promise<Record<string, string>>((resolve) => {
    createInterface({ input: child.stdout! }).on('line', (text) => {
      const line = (text.startsWith('{') ? JSON.parse(text) : {}) as {
        msg?: string
        urls?: Record<string, string>
      }
      if (line.msg === 'ready') resolve(line.urls ?? {})
    })
  })
  const early = once(child, 'exit').then(([code]): never => {
    throw new Error(`ended with ${code}`)
  })
  early.catch(() => 'told by the race, or an exit that was asked for')
  return Promise.race([ready, early])
}

/** `npx sluice start` in a group of its own: npx starts a shell, which starts the program. */
function start(t: Test, folder: string, settings: Readonly<Record<string, string>>): ChildProcess {
  const child = spawn('npx', ['--no-install', 'sluice', 'start'], {
    cwd: folder,
    detached: true,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: process.env.HOME ?? '',
      PORT: '0',
      DEVNET_PORT: '0',
      DATA_PATH: join(folder, 'data'),
      DEVNET_SEED: 'false',
      EDGE_THREADS: '1',
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGKILL')
  })
  return child
}

t.test(
  'what npm packs installs into an empty folder, starts there, and serves what a stranger deploys',
  async (t) => {
    const sources = copyOfSources()
    const packed = npm(sources, ['pack', '--json'])
    t.equal(packed.code, 0, packed.err)
    const [{ filename, files }] = JSON.parse(packed.out.slice(packed.out.search(/^\[/m))) as [
      { filename: string; files: { path: string }[] },
    ]
    const paths = files.map(({ path }) => path)
    t.notOk(
      paths.find((path) => /^(test|bench|dist\/(test|bench))\//.test(path)),
      'nothing but the program',
    )
    for (const arch of ['x64', 'arm64']) {
      const compiler = arch === 'x64' ? 'x86_64-linux-gnu-g++' : 'aarch64-linux-gnu-g++'
      const has = spawnSync(compiler, ['--version']).error === undefined
      const skip = has ? false : `${compiler} is not installed`
      await t.test(`addons for ${arch}`, { skip }, async (t) => {
        const found = paths.filter((path) => path.endsWith(`/prebuilt/linux-${arch}-glibc.node`))
        t.strictSame(
          found.map((path) => path.split('/')[1]),
          [
            'client',
            'crash',
            'database',
            'digest',
            'ed25519',
            'mapped',
            'schedule',
            'secp256k1',
            'server',
            'words',
          ],
        )
      })
    }
    t.strictSame(
      readdirSync(join(sources, 'native/server')).filter((name) => name === 'prebuilt'),
      [],
      'a checkout does not keep them: they would outlive a change of their sources',
    )

    const folder = scratch('installed')
    writeFileSync(join(folder, 'package.json'), '{}')
    const tarball = join(sources, filename)
    const installed = npm(folder, ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball])
    if (installed.code !== 0 && isAway.test(installed.err)) {
      t.comment('no registry: the dependencies of this checkout are used')
      installByHand(folder, tarball)
    } else t.equal(installed.code, 0, installed.err)
    t.notOk(existsSync(join(folder, 'node_modules/sluice/native/server/build')), 'nothing had to be built')

    const help = npm(folder, ['exec', '--no', '--', 'sluice', '--help'])
    t.match(help.out, 'Usage: sluice COMMAND')
    const visitor = await stranger(t, folder)
    const granted = spawnSync('npx', ['--no-install', 'sluice', 'names', 'grant', 'site', visitor.address], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', DATA_PATH: join(folder, 'data') },
      encoding: 'utf8',
    })
    t.equal(granted.status, 0, granted.stderr)
    const child = start(t, folder, visitor.settings)
    const urls = await started(child)
    const info = await fetch(new URL('/gateway/info', urls.gateway))
    t.equal(info.status, 200)
    t.equal((await fetch(new URL('/', urls.gateway), { headers: { accept: 'text/html' } })).status, 200)
    t.equal((await fetch(new URL('/gateway/console', urls.console ?? urls.gateway))).status, 200)
    await visitor.deploys(urls)
    const exited = once(child, 'exit')
    process.kill(-child.pid!, 'SIGTERM')
    await exited
  },
)
