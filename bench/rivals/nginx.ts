import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { pause } from '../../src/actor/clock.js'
import { freePort, start } from '../kit/child.js'
import { emptyFolder } from '../kit/folders.js'
import { type Candidate, candidate } from './candidate.js'

const hostName = '127.0.0.1'

/** Descriptors that a process may have here at most. */
const descriptorsMax = Number(
  /^Max open files +\d+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 1024,
)

/** Files that nginx keeps open: all of a case where the limit of descriptors allows it, with room for connections. */
const openFilesMax = Math.min(250_000, descriptorsMax - 2000)

export interface NginxOptions {
  readonly name: string
  readonly threads: number
  readonly sendfile: boolean
  /** Lines of `http`. */
  readonly http?: readonly string[]
  /** Lines of its server. */
  readonly server: readonly string[]
  /** Further servers on the same port. */
  readonly servers?: readonly string[]
  readonly env?: Record<string, string>
  /** TLS is spoken with this certificate. */
  readonly pair?: PairFiles
}

/** Files of a certificate and its key (PEM). */
export interface PairFiles {
  readonly cert: string
  readonly key: string
  /** HTTP/2 is offered, too. */
  readonly http2?: boolean
}

/** As in deploy/nginx.conf. */
function tlsLines({ cert, key }: PairFiles): string {
  return `ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate ${cert}; ssl_certificate_key ${key};`
}

async function answers(port: number): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) {
    const socket = connect(port, hostName)
    try {
      await once(socket, 'connect')
      return
    } catch {
      await pause(50) // it does not listen yet
    } finally {
      socket.destroy()
    }
  }
  throw new Error('nginx does not listen')
}

/** Starts nginx with one worker for each of our threads. */
export async function startNginx(options: NginxOptions): Promise<Candidate> {
  const { name, threads, sendfile, http = [], server, servers = [], env = {}, pair } = options
  const port = await freePort()
  const home = emptyFolder(`nginx-${port}`)
  const listen = `listen ${hostName}:${port}${pair === undefined ? '' : ' ssl'}${pair?.http2 === true ? ' http2' : ''}`
  const configuration = [
    process.getuid?.() === 0 ? 'user root;' : '',
    `daemon off; worker_processes ${threads}; worker_rlimit_nofile ${openFilesMax + 2000};`,
    `pid ${home}/pid; error_log ${home}/error.log;`,
    'events { worker_connections 1900; }',
    'http {',
    'access_log off; log_not_found off; tcp_nopush off; tcp_nodelay on; server_tokens off;',
    sendfile ? 'sendfile on; sendfile_max_chunk 512k;' : 'sendfile off; output_buffers 2 256k;',
    `open_file_cache max=${openFilesMax} inactive=300s; open_file_cache_valid 300s;`,
    'keepalive_requests 100000000; keepalive_timeout 300; default_type application/octet-stream;',
    `client_body_temp_path ${home}/body; proxy_temp_path ${home}/proxy; fastcgi_temp_path ${home}/fastcgi;`,
    `uwsgi_temp_path ${home}/uwsgi; scgi_temp_path ${home}/scgi;`,
    pair === undefined ? '' : tlsLines(pair),
    ...http,
    `server { ${listen}${threads > 1 ? ' reuseport' : ''} backlog=4096; server_name _; ${server.join('\n')} }`,
    ...servers.map((more) => `server { ${listen}; ${more} }`),
    '}',
  ]
  writeFileSync(`${home}/nginx.conf`, configuration.join('\n'))
  const words = ['-c', `${home}/nginx.conf`, '-p', home, '-e', `${home}/error.log`]
  const child = await start('nginx', words, { quiet: true, env })
  await answers(port)
  return { ...candidate(name, 'rival', port, child), speaksTls: pair !== undefined }
}

/** nginx over folders of files: contents by id, pages of sites by manifest and path, and by name. */
export function fileServer(
  folders: { readonly files: string; readonly sites?: string | undefined },
  threads: number,
  sendfile: boolean,
  pair?: PairFiles,
): Promise<Candidate> {
  const { files, sites } = folders
  const byName = `server_name ~^(?<label>[a-z0-9-]+)\\.localhost$; root ${sites}/names/$label;`
  return startNginx({
    name: sendfile ? 'nginx sendfile' : 'nginx read',
    threads,
    sendfile,
    server: [
      `root ${files};`,
      ...(sites === undefined ? [] : [`location ~ "^/[A-Za-z0-9_-]+/" { root ${sites}; }`]),
    ],
    servers: sites === undefined ? [] : [byName],
    ...(pair === undefined ? {} : { pair }),
  })
}

/** nginx that speaks TLS in front of a server of plain HTTP, as in deploy/nginx.conf. */
export function tlsFront(
  pair: PairFiles,
  behind: Candidate,
  port: number,
  threads: number,
): Promise<Candidate> {
  return startNginx({
    name: 'nginx in front',
    threads,
    sendfile: true,
    pair,
    http: [
      `upstream behind { server ${hostName}:${port}; keepalive 64; keepalive_requests 100000000; }`,
      'gzip off;',
    ],
    server: [
      'location / { proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection "";',
      'proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;',
      'proxy_buffer_size 32k; proxy_buffers 16 32k; proxy_busy_buffers_size 64k;',
      'proxy_max_temp_file_size 0; proxy_request_buffering off; }',
    ],
  }).then((front) => ({ ...front, behindPid: behind.pid }))
}

/** nginx over a folder of files below /raw/: where gateways fetch from. */
export function upstreamServer(files: string): Promise<Candidate> {
  const server = [`location /raw/ { alias ${files}/; }`]
  return startNginx({ name: 'upstream', threads: 1, sendfile: true, server })
}

/** The same over TLS, with the header lines of a gateway. `roots`: lines `/raw/<id> <root>;` of what it says of roots. */
export function gatewayLike(files: string, roots: readonly string[], pair: PairFiles): Promise<Candidate> {
  const path = `${emptyFolder('upstream-roots')}/map`
  writeFileSync(path, roots.join('\n'))
  return startNginx({
    name: 'upstream',
    threads: 1,
    sendfile: true,
    pair,
    http: [
      'map_hash_max_size 262144; map_hash_bucket_size 128;',
      `map $uri $root { default ''; include ${path}; }`,
    ],
    server: [
      `location /raw/ { alias ${files}/; etag on;`,
      'add_header X-AR-IO-Root-Transaction-Id $root; add_header X-AR-IO-Hops 1; add_header X-AR-IO-Trusted true;',
      'add_header X-AR-IO-Verified false; add_header X-Cache MISS; add_header Access-Control-Allow-Origin *;',
      'add_header Cache-Control "public, max-age=2592000, immutable"; }',
    ],
  })
}

/** nginx that fetches what it does not have from an upstream's /raw/, keeps it on disk, and sends it on. */
export function cachingProxy(upstreamPort: number, threads: number, scheme = 'http'): Promise<Candidate> {
  const cache = emptyFolder(`nginx-cache-${upstreamPort}`)
  return startNginx({
    name: 'nginx proxy_cache',
    threads,
    sendfile: true,
    http: [
      `proxy_cache_path ${cache} levels=1:2 keys_zone=cold:64m max_size=64g inactive=1h use_temp_path=off;`,
      `upstream source { server ${hostName}:${upstreamPort}; keepalive 64; keepalive_requests 100000000; }`,
    ],
    server: [
      `location / { proxy_pass ${scheme}://source/raw/; proxy_http_version 1.1; proxy_set_header Connection "";`,
      'proxy_cache cold; proxy_cache_valid 200 1h; proxy_buffers 16 32k; proxy_busy_buffers_size 64k; }',
    ],
  })
}
