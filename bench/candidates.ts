import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pause } from '../src/actor/clock.js'
import { workFolder } from './load.js'
import type { BenchObject } from './objects.js'
import { seed } from './seed.js'

/** A server under load. */
export interface Candidate {
  readonly name: string
  readonly port: number
  readonly pid: number
  readonly isGateway?: true
  stop(): Promise<void>
}

const hostName = '127.0.0.1'
const plain = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' }

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, hostName, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve()
    else child.once('exit', () => resolve())
  })
}

function candidate(name: string, port: number, child: ChildProcess): Candidate {
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await ended(child)
  }
  return { name, port, pid: child.pid ?? 0, stop }
}

/** The first match of `shape` in what the child says. Rejects where it ends before. */
function said(child: ChildProcess, shape: RegExp): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.on('data', (piece: Buffer) => {
      text += piece.toString()
      const found = shape.exec(text)
      if (found !== null) resolve(found)
    })
    child.once('exit', () => reject(new Error(`it ended before it was ready:\n${text}`)))
  })
}

/** The version of nginx on this machine, or undefined where there is none. */
export function nginxVersion(): string | undefined {
  const { status, stderr } = spawnSync('nginx', ['-v'], { encoding: 'utf8', env: plain })
  return status === 0 ? stderr.trim() : undefined
}

/** As many header lines as an answer of the gateway has, about as long: so that nginx, too, can be seen with them. */
const usualHeaders = [
  'Access-Control-Allow-Origin "*"',
  'Access-Control-Expose-Headers "*"',
  'X-Request-Id $request_id',
  'Cache-Control "public, max-age=43200"',
  'X-Cache HIT',
  'X-GATEWAY-Data-Id $uri',
  'X-GATEWAY-Stable false',
  'X-GATEWAY-Verified true',
  'X-GATEWAY-Trusted true',
  'X-GATEWAY-Digest "CYpBe-uGGAzUv3QaGC8IE1SeLAv963ADebjeDBiRIvo"',
  'Content-Digest "sha-256=:CYpBe+uGGAzUv3QaGC8IE1SeLAv963ADebjeDBiRIvo=:"',
  `Signature-Input "${'s'.repeat(280)}"`,
  `Signature "sig1=:${'A'.repeat(86)}==:"`,
  'X-GATEWAY-Hops 0',
]

/** nginx over the folder of the objects, on its faster settings, with one worker for each of our threads. */
export async function startNginx(
  folder: string,
  threads: number,
  way: 'sendfile' | 'read' | 'headers',
): Promise<Candidate> {
  const port = await freePort()
  const home = join(workFolder, `nginx-${port}`)
  mkdirSync(home, { recursive: true })
  const files =
    way === 'read' ? 'sendfile off; output_buffers 2 512k;' : 'sendfile on; sendfile_max_chunk 512k;'
  const lines = way === 'headers' ? usualHeaders.map((line) => `add_header ${line} always;`).join(' ') : ''
  const configuration = [
    process.getuid?.() === 0 ? 'user root;' : '',
    `daemon off; worker_processes ${threads}; pid ${home}/pid; error_log ${home}/error.log;`,
    'events { worker_connections 8192; }',
    `http { access_log off; ${files} tcp_nopush off; tcp_nodelay on; open_file_cache max=10000;`,
    'open_file_cache_valid 60s; keepalive_requests 100000000; keepalive_timeout 300;',
    'default_type application/octet-stream;',
    `server { listen ${hostName}:${port}${threads > 1 ? ' reuseport' : ''} backlog=4096; root ${folder}; ${lines} } }`,
  ]
  writeFileSync(`${home}/nginx.conf`, configuration.join('\n'))
  const args = ['-c', `${home}/nginx.conf`, '-p', home, '-e', `${home}/error.log`]
  const child = spawn('nginx', args, { stdio: 'ignore', env: plain })
  await pause(500)
  return candidate(`nginx ${way}`, port, child)
}

/** The usual way in Node. */
export async function startNodeHttp(folder: string): Promise<Candidate> {
  const script = fileURLToPath(new URL('node-http.js', import.meta.url))
  const child = spawn(process.execPath, [script, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: plain,
  })
  const [, port] = await said(child, /^(\d+)\n/)
  return candidate('node:http', Number(port), child)
}

/** This program, on a data folder of its own with the objects in its cache; with `settings` of its own under another name. */
export async function startGateway(
  objects: readonly BenchObject[],
  threads: number,
  other: {
    readonly name: string
    readonly settings: Readonly<Record<string, string>>
    /** Puts more into the data folder before the start. */
    readonly prepare?: (dataPath: string) => Promise<void>
  } = { name: 'sluice', settings: {} },
): Promise<Candidate> {
  const dataPath = join(workFolder, `data-${other.name}`)
  rmSync(dataPath, { recursive: true, force: true })
  await seed(dataPath, objects)
  await other.prepare?.(dataPath)
  const env = {
    ...plain,
    PORT: '0',
    DEVNET_PORT: '0',
    DEVNET_SEED: 'false',
    LISTEN_ADDRESS: hostName,
    DATA_PATH: dataPath,
    EDGE_THREADS: String(threads),
    ...other.settings,
  }
  const script = fileURLToPath(new URL('../src/cli/sluice.js', import.meta.url))
  const child = spawn(process.execPath, [script, 'start'], { stdio: ['ignore', 'pipe', 'inherit'], env })
  const [, port] = await said(child, /"gateway":"http:\/\/[^"]*:(\d+)/)
  return { ...candidate(other.name, Number(port), child), isGateway: true }
}
