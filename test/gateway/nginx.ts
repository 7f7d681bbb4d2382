import { spawn, spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findPort } from '../../src/actor/claim.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

/** True where nginx can be started here. */
export const hasNginx = spawnSync('nginx', ['-v']).status === 0

export interface Nginx {
  readonly url: string
  close(): Promise<void>
}

/** nginx serving these files, without modification dates. */
export async function startNginx(files: Readonly<Record<string, Buffer>>): Promise<Nginx> {
  const folder = scratch('nginx')
  for (const [name, body] of Object.entries(files)) writeFileSync(join(folder, name), body)
  const port = await findPort('127.0.0.1', 0, 'the port of nginx')
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
  await eventually('nginx answers', () => {
    if (child.exitCode !== null) throw new Error('nginx does not start')
    return fetch(url).then(
      () => true,
      () => false,
    )
  })
  return {
    url,
    async close() {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
