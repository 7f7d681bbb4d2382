import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pause } from '../../src/actor/clock.js'

/** True where nginx can be started here. */
export const hasNginx = spawnSync('nginx', ['-v']).status === 0

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

export interface Nginx {
  readonly url: string
  close(): Promise<void>
}

/** nginx serving these files, without modification dates. */
export async function startNginx(files: Readonly<Record<string, Buffer>>): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'nginx-'))
  for (const [name, body] of Object.entries(files)) writeFileSync(join(folder, name), body)
  const port = await freePort()
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/t;`,
  )
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
    events { worker_connections 64; }
    http {
      access_log off; default_type application/octet-stream; ${places.join(' ')}
      server {
        listen 127.0.0.1:${port}; root ${folder};
        if_modified_since off; add_header Last-Modified "";
      }
    }`,
  )
  const child = spawn(
    'nginx',
    ['-c', join(folder, 'nginx.conf'), '-p', folder, '-e', `${folder}/error.log`],
    {
      stdio: 'ignore',
    },
  )
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = `http://127.0.0.1:${port}`
  for (let tries = 0; ; tries += 1) {
    const up = await fetch(url).then(
      () => true,
      () => false,
    )
    if (up) break
    if (tries === 200) throw new Error('nginx does not start')
    await pause(25)
  }
  return {
    url,
    async close() {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
