/** The nginx front as it is shipped, before a server that records the requests. */
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { findPort } from '../../src/actor/claim.js'
import { eventually } from '../eventually.js'
import { hasNginx } from './nginx.js'

const shipped = readFileSync(fileURLToPath(new URL('../../../deploy/nginx.conf', import.meta.url)), 'utf8')

/** The shipped server for HTTPS without TLS, on a free port. */
async function front(t: Test): Promise<{ port: number; forwarded: { target: string; host: string }[] }> {
  const forwarded: { target: string; host: string }[] = []
  const behind = createServer((request, response) => {
    forwarded.push({ target: request.url ?? '', host: request.headers.host ?? '' })
    response.end('forwarded')
  })
  await new Promise<void>((resolve) => behind.listen(0, '127.0.0.1', resolve))
  const port = await findPort('127.0.0.1', 0, 'the port of nginx')
  const folder = t.testdir()
  const served = shipped
    .replace('127.0.0.1:3000', `127.0.0.1:${(behind.address() as AddressInfo).port}`)
    .replace(/server \{\n {2}listen 80;[\s\S]*?\n\}\n/, '')
    .replace(/ {2}listen (\[::\]:)?443 ssl http2;\n/g, '')
    .replace(/ {2}ssl_\w+ [^;]+;\n/g, '')
    .replace('server_name', `listen 127.0.0.1:${port};\n  server_name`)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(' ')
  const path = join(folder, 'nginx.conf')
  writeFileSync(
    path,
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
    events { worker_connections 64; } http { access_log off; ${temporary} ${served} }`,
  )
  const args = ['-c', path, '-p', folder, '-e', join(folder, 'error.log')]
  execFileSync('nginx', ['-t', '-q', ...args], { stdio: 'inherit' })
  const child = spawn('nginx', args, { stdio: 'ignore' })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
    behind.closeAllConnections()
    behind.close()
  })
  await eventually(
    'nginx answers',
    async () => (await raw(port, 'GET /up HTTP/1.1\r\nHost: gateway.example')) !== '',
  )
  forwarded.length = 0
  return { port, forwarded }
}

/** Sends a head as it stands; resolves with the status, or '' where there was no answer. */
function raw(port: number, head: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.on('data', (piece: Buffer) => {
      text += piece.toString('latin1')
    })
    socket.on('error', () => socket.destroy())
    socket.on('close', () => resolve(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? ''))
    socket.write(`${head}\r\nConnection: close\r\n\r\n`)
  })
}

const options = { skip: hasNginx ? false : 'no nginx here' }

t.test('the gateway behind nginx gets the host by which nginx chose the server', options, async (t) => {
  const { port, forwarded } = await front(t)
  const sandbox = `${'a'.repeat(52)}.gateway.example`
  t.equal(await raw(port, `GET http://${sandbox}/x?y HTTP/1.1\r\nHost: gateway.example`), '200')
  t.equal(await raw(port, 'GET /x HTTP/1.1\r\nHost: Name.Gateway.Example'), '200')
  t.strictSame(forwarded, [
    { target: '/x?y', host: sandbox },
    { target: '/x', host: 'name.gateway.example' },
  ])
})

t.test('paths for operators are not forwarded, in any spelling', options, async (t) => {
  const { port, forwarded } = await front(t)
  const kept = [
    '/gateway/admin/overview',
    '/gateway/admin',
    '/GATEWAY/Admin/overview',
    '/ar-io/admin/queue-tx',
    '/gateway/console',
    '/gateway/console/page.js',
    '/ar-io/console?x',
    '/gateway/__gateway_metrics',
    '/gateway/__gateway_metrics?x',
    '/gateway/%61dmin/overview',
    '//gateway/admin/overview',
    '/x/../gateway/admin/overview',
    '/gateway/admin/../../x',
    '/gateway//admin/overview',
    'http://gateway.example/gateway/admin/overview',
  ]
  for (const target of kept) {
    t.equal(await raw(port, `GET ${target} HTTP/1.1\r\nHost: gateway.example`), '404', target)
    t.equal(await raw(port, `PUT ${target} HTTP/1.1\r\nHost: x.gateway.example`), '404', `PUT ${target}`)
  }
  t.strictSame(forwarded, [])
  const open = [
    '/',
    '/gateway/info',
    '/gateway/healthcheck',
    '/gateway/administration',
    '/raw/x?/gateway/admins',
    '/gateway/rate-limit/ip/1.2.3.4',
    '/x/gateway/admin',
    '/graphql',
  ]
  for (const target of open) {
    t.equal(await raw(port, `GET ${target} HTTP/1.1\r\nHost: gateway.example`), '200', target)
  }
  t.strictSame(
    forwarded.map(({ target }) => target),
    open,
    'and nothing is changed on the way',
  )
})
