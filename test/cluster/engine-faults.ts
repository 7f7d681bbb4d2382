/** What can happen to the engines that machines share, each for so long. */
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { Client } from 'pg'
import { pause } from '../../src/actor/clock.js'
import { freePort, type RedisServer, startRedis } from '../admission/redis-server.js'
import { type PostgresServer, startPostgres } from '../engines/postgres-server.js'
import { bucketAt, type Radosgw, signedTo, startRadosgw } from '../engines/radosgw.js'
import type { Relay } from '../engines/relay.js'
import { below } from '../property.js'
import { scratch } from '../scratch.js'
import { suspend } from '../suspend.js'

/** Lets something fail for so long; resolves when it is well again. */
export type Fault = (ms: number) => Promise<void>
export type Faults = Readonly<Record<string, Fault>>

/** Does something, and its reverse after so long. */
export function forSoLong(begin: () => unknown, end: () => unknown): Fault {
  return async (ms) => {
    await begin()
    try {
      await pause(ms)
    } finally {
      await end()
    }
  }
}

/** All engines of three machines. */
export interface Engines {
  readonly database: PostgresServer
  readonly objects: Radosgw
  readonly bucket: string
  readonly redis: RedisAgain
  /** Its port. */
  readonly chain: number
}

/** All but the chain. */
export async function startEngines(): Promise<Omit<Engines, 'chain'>> {
  const [objects, database, redis] = await Promise.all([startRadosgw(), startPostgres(), RedisAgain.start()])
  return { objects, database, redis, bucket: await bucketAt(objects) }
}

/** A Redis that comes back on its port with what it had. */
export class RedisAgain {
  readonly #folder = scratch('redis')

  private constructor(
    readonly port: number,
    public server: RedisServer | undefined = undefined,
  ) {}

  static async start(): Promise<RedisAgain> {
    const redis = new RedisAgain(await freePort())
    await redis.again()
    return redis
  }

  async again(): Promise<void> {
    this.server = await startRedis(this.#folder, this.port)
  }

  stop(): Promise<void> {
    return this.server?.stop() ?? Promise.resolve()
  }

  /** Sends it commands, one after the other, over one connection; its answers. Rejects where it refuses one. */
  async command(...commands: readonly string[]): Promise<string> {
    const socket = connect(this.port, '127.0.0.1')
    socket.end(`${commands.join('\r\n')}\r\n`)
    const answers = await text(socket)
    if (/^-/m.test(answers)) throw new Error(`Redis: ${answers}`)
    return answers
  }
}

async function connected(
  { url }: Pick<PostgresServer, 'url'>,
  ...statements: readonly string[]
): Promise<Client> {
  const client = new Client({ connectionString: url })
  // The next fault may end it before it is over.
  client.on('error', () => undefined)
  await client.connect()
  for (const statement of statements) await changed(client, statement)
  return client
}

/** Triggers on all tables are locked in another order than the program locks these: whoever is chosen tries again. */
async function changed(client: Client, statement: string): Promise<void> {
  for (;;) {
    try {
      await client.query(statement)
      return
    } catch (error) {
      if ((error as { readonly code?: string }).code !== '40P01') throw error
    }
  }
}

/** Stands for a server without room on its disk: nothing is inserted or changed, and what is there can be read. */
const fill = [
  `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
   $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`,
  `DO $$ DECLARE one text; BEGIN FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
     EXECUTE format('CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON %I EXECUTE FUNCTION full_disk()', one);
   END LOOP; END $$`,
]
const empty = ['DROP FUNCTION full_disk() CASCADE']

const others =
  'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename IS NOT NULL'

/** `hasAll`: not only that it is away. */
export function faultsOfPostgres(server: PostgresServer, hasAll: boolean): Faults {
  const gone: Faults = {
    'PostgreSQL stands still': forSoLong(server.hang, server.wake),
    'PostgreSQL is away': forSoLong(server.stop, server.start),
  }
  if (!hasAll) return gone
  return {
    ...gone,
    'PostgreSQL refuses credentials': async (ms) => {
      const client = await connected(server, 'ALTER ROLE sluice NOLOGIN', others)
      await pause(ms)
      await client.query('ALTER ROLE sluice LOGIN')
      await client.end()
    },
    'PostgreSQL can only be read': async (ms) => {
      const reload = 'SELECT pg_reload_conf()'
      const client = await connected(server, 'ALTER SYSTEM SET default_transaction_read_only = on', reload)
      await pause(ms)
      const back = [
        'SET default_transaction_read_only = off',
        'ALTER SYSTEM RESET default_transaction_read_only',
      ]
      for (const statement of [...back, reload]) await client.query(statement)
      await client.end()
    },
    'PostgreSQL is full': async (ms) => {
      const url = new URL(server.url)
      url.pathname = '/cluster'
      const client = await connected({ url: url.href }, ...fill)
      await pause(ms)
      for (const statement of empty) await changed(client, statement)
      await client.end()
    },
    'PostgreSQL ends all sessions': async () => {
      await (await connected(server, others)).end()
    },
  }
}

const noWrites = (bucket: string): string =>
  JSON.stringify({
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Deny',
        Principal: '*',
        Action: ['s3:PutObject', 's3:DeleteObject'],
        Resource: `arn:aws:s3:::${bucket}/*`,
      },
    ],
  })

export function faultsOfObjects(server: Radosgw, bucket: string, hasAll: boolean): Faults {
  const { gateway, objects, credentials } = server
  const gone: Faults = {
    'S3 stands still': forSoLong(
      () => suspend(gateway),
      () => gateway.kill('SIGCONT'),
    ),
    'S3 has no disk': forSoLong(() => suspend(objects), server.wake),
  }
  if (!hasAll) return gone
  const secret = (secretAccessKey: string): Promise<void> => {
    const keys = ['--access-key', credentials.accessKeyId, '--secret-key', secretAccessKey]
    return server.admin('key', 'create', '--uid', 'test', ...keys)
  }
  const policy = `${bucket}?policy`
  const quota = (...words: readonly string[]): Promise<void> =>
    server.admin('quota', ...words, '--quota-scope=bucket', '--uid', 'test')
  return {
    ...gone,
    'S3 refuses credentials': forSoLong(
      () => secret('another'),
      () => secret(credentials.secretAccessKey),
    ),
    'the bucket can only be read': forSoLong(
      () => signedTo(server, 'PUT', policy, noWrites(bucket)),
      () => signedTo(server, 'DELETE', policy),
    ),
    'the bucket is full': forSoLong(
      async () => {
        await quota('set', '--max-objects=1')
        await quota('enable')
      },
      () => quota('disable'),
    ),
  }
}

export function faultsOfRedis(redis: RedisAgain, hasAll: boolean): Faults {
  const still = async (): Promise<void> => {
    if (redis.server !== undefined) await suspend(redis.server.process)
  }
  const gone: Faults = {
    'Redis stands still': forSoLong(still, () => redis.server?.process.kill('SIGCONT')),
    'Redis is away': forSoLong(
      () => redis.stop(),
      () => redis.again(),
    ),
  }
  if (!hasAll) return gone
  return {
    ...gone,
    'Redis refuses credentials': forSoLong(
      () =>
        redis.command('CONFIG SET requirepass another', 'CLIENT KILL TYPE normal', 'CLIENT KILL TYPE pubsub'),
      () => redis.command('AUTH another', 'CONFIG SET requirepass ""'),
    ),
    'Redis is full': forSoLong(
      () => redis.command('CONFIG SET maxmemory 1'),
      () => redis.command('CONFIG SET maxmemory 0'),
    ),
  }
}

/** A fork of the chain at `url` replaces up to four blocks; what was in them is in later ones. */
export function faultsOfChain(url: string): Faults {
  return {
    'the chain forks': async () => {
      const { ok, status } = await fetch(`${url}/devnet/fork/${1 + below(4)}`, { method: 'POST' })
      if (!ok) throw new Error(`no fork: ${status}`)
    },
  }
}

/** The way to an engine is closed at both ends, or slow. */
export function faultsOfWay(name: string, relay: Relay): Faults {
  const slow = (delayMs: number) => () => Object.assign(relay, { delayMs })
  return {
    [`the way to ${name} is closed`]: forSoLong(relay.shut, relay.open),
    [`the way to ${name} is slow`]: forSoLong(slow(5000), slow(0)),
  }
}
