import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { AwsV4Signer } from 'aws4fetch'
import { findPort } from '../../src/actor/claim.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'

/** A real S3 service: Ceph's gateway over one monitor and one store in memory (Debian: ceph-mon, ceph-osd, radosgw). */
export interface Radosgw {
  readonly endpoint: string
  readonly region: string
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string }
  /** The processes, to be stopped by signals: the gateway alone answers; without its store it does not. */
  readonly gateway: ChildProcess
  readonly objects: ChildProcess
  /** Lets the store go on after it stood still. Its lease may be over by then for good, so the monitor has it begin anew. */
  wake(): Promise<void>
  /** Runs radosgw-admin with these words. */
  admin(...words: readonly string[]): Promise<void>
  stop(): Promise<void>
}

export const hasRadosgw = ['radosgw', 'ceph-mon', 'ceph-osd'].every(
  (name) => spawnSync(name, ['--version']).status === 0,
)

/** For tests that need it: skipped where it is not installed, but not in CI. */
export const radosgwAbsent =
  hasRadosgw || process.env.CI === 'true'
    ? {}
    : { skip: 'radosgw is not installed (Debian: ceph-mon ceph-osd radosgw)' }

const readyMs = 60_000
const runs = promisify(execFile)
const credentials = { accessKeyId: 'testkey', secretAccessKey: 'testsecret' }

/** Everything on loopback, so without keys between the daemons; one copy of each object. */
function configuration(folder: string, ports: { monitor: number; gateway: number }): string {
  return `[global]
fsid = ${randomUUID()}
mon_host = v2:127.0.0.1:${ports.monitor}
ms_bind_msgr1 = false
mon_initial_members = a
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_mon_client_mode = crc
run_dir = ${folder}
admin_socket = ${folder}/$name.sock
pid_file =
log_file = ${folder}/$name.log
log_to_stderr = false
crash_dir = ${folder}
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
paxos_propose_interval = 0.02
paxos_min_wait = 0.01
mon_tick_interval = 1
rgw_rados_pool_pg_num_min = 4
rgw_override_bucket_index_max_shards = 1
rgw_enable_usage_log = false
rgw_enable_quota_threads = false
rgw_dynamic_resharding = false
rgw_thread_pool_size = 64
[mon.a]
mon_data = ${folder}/mon
mon_data_avail_warn = 1
mon_data_avail_crit = 0
[osd]
osd_data = ${folder}/osd
osd_objectstore = memstore
osd_class_update_on_start = false
memstore_device_bytes = 2147483648
[client.rgw.a]
rgw_frontends = beast endpoint=127.0.0.1:${ports.gateway} tcp_nodelay=1
rgw_data = ${folder}/rgw
`
}

/** Starts one with a user of these credentials; ready in some three seconds. Rejects where it does not come up. */
export async function startRadosgw(): Promise<Radosgw> {
  const folder = scratch('rgw')
  for (const name of ['mon', 'osd', 'rgw']) mkdirSync(join(folder, name))
  const [monitor, gateway] = await Promise.all([
    findPort('127.0.0.1', 0, 'the monitor'),
    findPort('127.0.0.1', 0, 'the gateway'),
  ])
  const path = join(folder, 'ceph.conf')
  const text = configuration(folder, { monitor, gateway })
  writeFileSync(path, text)
  const environment = { ...process.env, CEPH_CONF: path, CEPH_ARGS: '' }
  const run = (name: string, ...words: string[]): void => {
    const ended = spawnSync(name, words, { env: environment, timeout: readyMs, encoding: 'utf8' })
    if (ended.status !== 0) throw new Error(`${name} ${words.join(' ')}: ${ended.stderr.slice(-1000)}`)
  }
  const daemon = (name: string, ...words: string[]): ChildProcess => {
    const out = openSync(join(folder, `${name}.out`), 'a')
    const child = spawn(name, ['-f', '-c', path, ...words], {
      env: environment,
      stdio: ['ignore', out, out],
    })
    // Nobody leaves a server behind, however the test ends.
    process.once('exit', () => child.kill('SIGKILL'))
    return child
  }
  const map = join(folder, 'monmap')
  const fsid = /fsid = (\S+)/.exec(text)?.[1] ?? ''
  const place = `[v2:127.0.0.1:${monitor}]`
  run('monmaptool', '--create', '--addv', 'a', place, '--fsid', fsid, '--set-min-mon-release', 'pacific', map)
  run('ceph-mon', '-c', path, '--mkfs', '-i', 'a', '--monmap', map)
  const mon = daemon('ceph-mon', '-i', 'a')
  const osdId = randomUUID()
  run('ceph', '-c', path, '--connect-timeout', '20', 'osd', 'new', osdId)
  run('ceph-osd', '-c', path, '-i', '0', '--mkfs', '--osd-uuid', osdId)
  const osd = daemon('ceph-osd', '-i', '0')
  const { accessKeyId, secretAccessKey } = credentials
  const keys = ['--access-key', accessKeyId, '--secret-key', secretAccessKey]
  const admin = ['-c', path, '-n', 'client.rgw.a', 'user', 'create', '--uid', 'test']
  run('radosgw-admin', ...admin, '--display-name', 'test', ...keys)
  const rgw = daemon('radosgw', '-n', 'client.rgw.a')
  const endpoint = `http://127.0.0.1:${gateway}`
  await answering(endpoint, rgw)
  return {
    endpoint,
    region: 'default',
    credentials,
    gateway: rgw,
    objects: osd,
    ...ordersTo(path, environment, osd),
    async stop() {
      for (const child of [rgw, osd, mon]) {
        const gone = new Promise((resolve) => child.once('exit', resolve))
        if (child.exitCode !== null || child.signalCode !== null) continue
        child.kill('SIGKILL')
        await gone
      }
    },
  }
}

function ordersTo(
  path: string,
  environment: NodeJS.ProcessEnv,
  osd: ChildProcess,
): Pick<Radosgw, 'wake' | 'admin'> {
  return {
    async wake() {
      osd.kill('SIGCONT')
      await runs('ceph', ['-c', path, '--connect-timeout', '20', 'osd', 'down', '0'], { env: environment })
    },
    async admin(...words) {
      await runs('radosgw-admin', ['-c', path, '-n', 'client.rgw.a', ...words], { env: environment })
    },
  }
}

/** Makes a bucket, as an operator does. */
export async function bucketAt(server: Radosgw): Promise<string> {
  const bucket = `test-${randomUUID()}`
  await signedTo(server, 'PUT', bucket)
  return bucket
}

/** Sends a request of the owner to a bucket, or a part of it. Rejects where it is refused. */
export async function signedTo(server: Radosgw, method: string, path: string, body?: string): Promise<void> {
  const { region, credentials, endpoint } = server
  const about = { method, url: `${endpoint}/${path}`, service: 's3', region, ...credentials }
  const { url, headers } = await new AwsV4Signer(body === undefined ? about : { ...about, body }).sign()
  const answer = await fetch(url, body === undefined ? { method, headers } : { method, headers, body })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
}

async function answering(endpoint: string, child: ChildProcess): Promise<void> {
  await eventually('radosgw answers', () => {
    if (child.exitCode !== null) throw new Error('radosgw did not come up')
    return fetch(endpoint).then(
      () => true,
      () => false,
    )
  })
}

/** Settings by which a program keeps its content in a bucket of the engine. */
export function storeSettings(
  { endpoint, region, credentials }: Radosgw,
  bucket: string,
): Record<string, string> {
  return {
    CONTENT_STORE: 's3',
    S3_ENDPOINT: endpoint,
    S3_BUCKET: bucket,
    S3_PREFIX: 'content',
    AWS_REGION: region,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    S3_TIMEOUT_MS: '5000',
  }
}
