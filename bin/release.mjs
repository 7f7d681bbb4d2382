// Makes a release, up to the step that cannot be taken back:
//
//   npm run release -- VERSION [--out FOLDER] [--nodes 20,22,24] [--repository URL]
//
// --nodes       majors, whose binaries come from the registry, or paths of binaries
// --repository  the public repository, written into both packages as `repository`: npm's provenance names it and needs it
//
// Builds both packages (sluice, sluice-client), installs each tarball into an empty folder and starts it with each version of Node,
// gives the changelog's section "Unreleased" the version and the date, sets the version in package.json, writes SHA256SUMS, and says
// what is left to do by hand. It publishes nothing. What it changed in the checkout is shown by git diff.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
const { values, positionals } = parseArgs({
  options: {
    out: { type: 'string', default: 'release' },
    nodes: { type: 'string', default: '20,22,24' },
    repository: { type: 'string' },
  },
  allowPositionals: true,
})
const [version] = positionals

function fail(message) {
  process.stderr.write(`release: ${message}\n`)
  process.exit(1)
}

/** Runs a program to its end; its output where it succeeds. `show`: its output is shown as it comes. */
function run(program, words, { cwd = root, env = process.env, show = false } = {}) {
  const stdio = show ? ['ignore', 'inherit', 'inherit'] : ['ignore', 'pipe', 'pipe']
  const { status, stdout, stderr, error } = spawnSync(program, words, { cwd, env, encoding: 'utf8', stdio })
  if (error !== undefined) fail(`${program}: ${error.message}`)
  if (status !== 0) fail(`${program} ${words.join(' ')} ended with ${status}\n${stdout ?? ''}${stderr ?? ''}`)
  return stdout ?? ''
}

const say = (line) => process.stdout.write(`${line}\n`)

if (version === undefined || !/^\d+\.\d+\.\d+(-[\w.-]+)?$/.test(version))
  fail('give a version, such as 1.2.3')
if (run('git', ['status', '--porcelain']) !== '') fail('the checkout has changes: commit them first')
if (values.repository !== undefined && !/^https:\/\/[^/]+\/.+/.test(values.repository))
  fail('--repository wants the https address of the public repository')
for (const node of values.nodes.split(','))
  if (node.includes('/') ? !existsSync(node) : !/^\d+$/.test(node)) fail(`--nodes: there is no Node ${node}`)

/** The changelog with its section "Unreleased" as that of this version. */
function releasedChangelog(text, date) {
  if (!/^## Unreleased\n\n### /m.test(text)) fail('CHANGELOG.md has nothing below "## Unreleased"')
  if (text.includes(`## ${version} `)) fail(`CHANGELOG.md has a section ${version} already`)
  return text.replace('## Unreleased\n', `## Unreleased\n\n## ${version} (${date})\n`)
}

/** Both tarballs in the folder; their paths. */
function pack(out) {
  const [packed] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', out]).replace(/^[^[]*/, ''))
  return [join(out, packed.filename), run(process.execPath, ['bin/pack-client.mjs', out]).trim()]
}

/** A binary of Node: the file that was named, this one, or the package of the registry that holds it. */
function nodeOf(major, folder) {
  if (major.includes('/')) return resolve(major)
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath
  const name = `node-${process.platform}-${process.arch}`
  run('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', `${name}@${major}`])
  return join(folder, 'node_modules', name, 'bin/node')
}

const inNode = (node) => ({ ...process.env, PATH: `${resolve(node, '..')}:${process.env.PATH}` })

/** Installs a tarball into an empty folder, and hands the folder to `check`. */
function tried(tarball, node, check) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-release-'))
  try {
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', tarball], {
      cwd: folder,
      env: inNode(node),
    })
    check(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The program starts, answers, and stops. */
function tryServer(folder, node) {
  const script = `
    import { spawn } from 'node:child_process'
    const child = spawn(process.execPath, ['node_modules/sluice/bin/sluice.mjs', 'start'], {
      env: { PATH: process.env.PATH, PORT: '0', DEVNET_PORT: '0', DATA_PATH: 'data', DEVNET_SEED: 'false', EDGE_THREADS: '1' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let text = ''
    child.stdout.on('data', async (piece) => {
      text += piece
      const line = text.split('\\n').find((one) => one.includes('"msg":"ready"'))
      if (line === undefined || child.isAsked) return
      child.isAsked = true
      const { status } = await fetch(new URL('/gateway/info', JSON.parse(line).urls.gateway))
      child.kill('SIGTERM')
      child.once('exit', (code) => process.exit(status === 200 && code === 0 ? 0 : 1))
    })
    setTimeout(() => process.exit(1), 120_000).unref()`
  run(node, ['--input-type=module', '-e', script], { cwd: folder, env: inNode(node) })
}

/** The library loads, signs, and its command says its version. */
function tryClient(folder, node) {
  const script = `
    import { signedItem, signerOfEthereum } from 'sluice-client'
    import 'sluice-client/fetch'
    import 'sluice-client/fs'
    import 'sluice-client/node'
    const signer = await signerOfEthereum('0a'.repeat(32))
    const { id } = await signedItem(new TextEncoder().encode('hello'), {}, signer)
    if (!/^[\\w-]{43}$/.test(id)) throw new Error(String(id))`
  run(node, ['--input-type=module', '-e', script], { cwd: folder, env: inNode(node) })
  const printed = run(node, ['node_modules/.bin/sluice-client', '--version'], { cwd: folder })
  if (printed.trim() !== `sluice-client ${version}`) fail(`sluice-client --version says ${printed}`)
}

const out = resolve(root, values.out)
rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
const manifest = join(root, 'package.json')
const changelog = join(root, 'CHANGELOG.md')
writeFileSync(
  changelog,
  releasedChangelog(readFileSync(changelog, 'utf8'), new Date().toISOString().slice(0, 10)),
)
run('npm', ['version', '--no-git-tag-version', '--allow-same-version', version])
if (values.repository !== undefined)
  run('npm', ['pkg', 'set', 'repository.type=git', `repository.url=git+${values.repository}`])
say(`Building ${version}`)
run('npm', ['run', '--silent', 'build'], { show: true })
const tarballs = pack(out)
const nodes = mkdtempSync(join(tmpdir(), 'sluice-nodes-'))
try {
  for (const major of values.nodes.split(',')) {
    const node = nodeOf(major, nodes)
    const [server, client] = tarballs
    say(`Trying both packages with Node ${run(node, ['--version']).trim()}`)
    tried(server, node, (folder) => tryServer(folder, node))
    tried(client, node, (folder) => tryClient(folder, node))
  }
} finally {
  rmSync(nodes, { recursive: true, force: true })
}
const hashed = (path, kind, form) => createHash(kind).update(readFileSync(path)).digest(form)
writeFileSync(
  join(out, 'SHA256SUMS'),
  tarballs.map((path) => `${hashed(path, 'sha256', 'hex')}  ${basename(path)}\n`).join(''),
)
say(`\nIn ${out}: ${[...tarballs.map((path) => basename(path)), 'SHA256SUMS'].join(', ')}`)
say(`integrity of ${basename(tarballs[1])}: sha512-${hashed(tarballs[1], 'sha512', 'base64')}`)

/** How both are published, with npm's proof of who built them from which sources, or why without it. */
function publishing() {
  const { repository } = JSON.parse(readFileSync(manifest, 'utf8'))
  const lines = (words) => tarballs.map((path) => `  npm publish ${path} ${words}`).join('\n')
  if (repository === undefined)
    return `  Without provenance, because package.json names no repository (--repository URL): npm proves only packages that the CI
  of a public repository built.
${lines('--access public --provenance=false')}`
  return `  With provenance only in the CI of ${repository.url} (GitHub Actions with "id-token: write", or GitLab); elsewhere npm
  refuses, and --provenance=false publishes without it.
${lines('--access public --provenance')}`
}

say(`\nLeft to do by hand, after a look at git diff (${basename(manifest)}, ${basename(changelog)}):
  git commit -am "Release ${version}" && git tag v${version} && git push --follow-tags
${publishing()}`)
