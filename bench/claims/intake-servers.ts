import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { scratch } from '../../test/scratch.js'
import { plainEnvironment, start, versionOf } from '../kit/child.js'
import { benchFolder, programPath, sluiceWords } from '../kit/folders.js'
import { startNginx } from '../rivals/nginx.js'

const clients = fileURLToPath(new URL('../../../test/clients/node_modules/', import.meta.url))
const wallet = fileURLToPath(new URL('../../../test/fixture/rsa-4096.jwk.json', import.meta.url))
export const tusPackages = {
  server: join(clients, '@tus/server/dist/index.js'),
  store: join(clients, '@tus/file-store/dist/index.js'),
}

/** A server that takes uploads. */
export interface Taker {
  readonly name: string
  readonly pid: number
  /** Where one upload goes. */
  readonly url: string
  readonly method: 'POST' | 'PUT'
  /** Of one upload of so many bytes. */
  headers(bytes: number): Record<string, string>
  /** What follows the address: a name of its own for each upload. */
  suffix(): string
  readonly status: number
  stop(): Promise<void>
}

export interface OursOptions {
  /** Receipts are not signed. */
  readonly unsigned?: boolean
  readonly services?: string
  /** Wallets whose uploads are free. */
  readonly wallets: readonly string[]
  /** Nothing is bundled, and items have up to 10 MiB. */
  readonly sandbox?: boolean
  readonly more?: Readonly<Record<string, string>>
}

export interface Ours extends Taker {
  readonly urls: Readonly<Record<string, string>>
}

/** The program with an embedded chain; receipts are on the disk before they are sent. */
export async function startOurs({
  unsigned = false,
  services = 'upload',
  wallets,
  sandbox = false,
  more = {},
}: OursOptions): Promise<Ours> {
  const preload = programPath('claims/intake-unsigned.js')
  const child = await start(process.execPath, [...sluiceWords, 'start'], {
    env: {
      PORT: '0',
      DEVNET_PORT: '0',
      DATA_PATH: scratch('bench-intake'),
      UPLOAD_WALLET_FILE: wallet,
      DEVNET_SEED: 'false',
      DEVNET_BLOCK_MS: '0',
      SERVICES: services,
      UPLOAD_FREE_WALLETS: wallets.join(','),
      UPLOAD_FREE_ITEM_BYTES: '10737418240',
      ...(sandbox ? { UPLOAD_SANDBOX: 'true' } : { UPLOAD_BUNDLE_WAIT_SECONDS: '3600' }),
      ...(unsigned ? { NODE_OPTIONS: `--import=${preload}` } : {}),
      ...more,
    },
    shape: /^\{.*"msg":"ready".*\}$/m,
  })
  const { urls } = JSON.parse(child.matched?.[0] ?? '{}') as { urls: Record<string, string> }
  return {
    name: 'sluice',
    pid: child.pid,
    url: `${urls.upload}/tx`,
    urls,
    method: 'POST',
    status: 200,
    headers: () => ({ 'content-type': 'application/octet-stream' }),
    suffix: () => '',
    stop: () => child.stop(),
  }
}

/** The library that flushes files when they are closed, for servers that do not. Undefined: no compiler is here. */
function flushing(): Record<string, string> | undefined {
  const compiler = ['cc', 'gcc', 'clang'].find((name) => versionOf(name, '--version') !== undefined)
  if (compiler === undefined) return undefined
  const path = join(scratch('bench-flush'), 'flush.so')
  const source = join(benchFolder, 'rivals', 'flush.c')
  execFileSync(compiler, ['-O2', '-shared', '-fPIC', '-o', path, source, '-ldl'], { env: plainEnvironment })
  return { LD_PRELOAD: path }
}

/** nginx that puts bodies into files. Undefined: it is not here. */
export async function startDav(): Promise<Taker | undefined> {
  const env = flushing()
  if (env === undefined || versionOf('nginx', '-v') === undefined) return undefined
  const folder = scratch('bench-dav')
  const nginx = await startNginx({
    name: 'nginx dav PUT',
    threads: 1,
    sendfile: true,
    env,
    server: [
      `root ${folder}; client_body_temp_path ${folder}/.body; client_max_body_size 0;`,
      'location / { dav_methods PUT; }',
    ],
  })
  let count = 0
  return {
    name: 'nginx dav PUT',
    pid: nginx.pid,
    url: `http://127.0.0.1:${nginx.port}/`,
    method: 'PUT',
    status: 201,
    headers: () => ({}),
    suffix: () => String(count++),
    stop: () => nginx.stop(),
  }
}

/** @tus/server with its store of files. Undefined: it is not here. */
export async function startTus(): Promise<Taker | undefined> {
  const env = flushing()
  if (env === undefined || !existsSync(tusPackages.server)) return undefined
  const words = [programPath('claims/intake-tus.js'), scratch('bench-tus')]
  const child = await start(process.execPath, words, { env, shape: /^port (\d+)$/m })
  return {
    name: '@tus/server',
    pid: child.pid,
    method: 'POST',
    status: 201,
    url: `http://127.0.0.1:${child.matched?.[1]}/files`,
    headers: (bytes) => ({
      'tus-resumable': '1.0.0',
      'upload-length': String(bytes),
      'content-type': 'application/offset+octet-stream',
    }),
    suffix: () => '',
    stop: () => child.stop(),
  }
}
