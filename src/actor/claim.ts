import { createHash, randomInt } from 'node:crypto'
import { closeSync, openSync, realpathSync, rmSync, statSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { pause } from './clock.js'

/**
 * Something that only one process may use at a time. The kernel releases the claim when the process ends in any way,
 * so that no stale lock is left after a kill -9.
 */
export interface Claim {
  release(): Promise<void>
}

function listening(server: Server, where: { path: string } | { host: string; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ ...where, exclusive: true }, () => resolve())
  })
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}

/**
 * Claims a name on this machine; undefined where a process, this one included, has it. It is given back when the process ends,
 * if not before, and does not keep the process running.
 */
export async function claim(name: string): Promise<Claim | undefined> {
  const server = createServer()
  try {
    // A name in Linux's abstract socket space: no file, gone with the process. Hashed, for it holds 107 bytes.
    await listening(server, { path: `\0sluice:${createHash('sha256').update(name).digest('hex')}` })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return undefined
  }
  server.unref()
  return { release: () => closed(server) }
}

/** Name of the socket in a folder that is claimed. */
const socketName = '.claim'

/** Makes sure that no other process uses the folder, whatever it is called there. Rejects with a plain word when one does. */
export async function claimFolder(path: string): Promise<Claim> {
  const claimed = await tryClaimFolder(path)
  if (claimed === undefined) {
    throw new Error(`another sluice is running on ${path}: stop it, or give this one a DATA_PATH of its own`)
  }
  return claimed
}

/**
 * Undefined where another process uses the folder. It makes two claims. A socket name is free of races, among processes of one
 * network namespace. A socket in the folder works among containers that share only the disk. Machines that share a disk over a
 * network are not detected, because no kernel knows both.
 */
export async function tryClaimFolder(path: string): Promise<Claim | undefined> {
  const named = await claim(realpathSync(path))
  if (named === undefined) return undefined
  const folder = openSync(path, 'r')
  // By its descriptor, because the path of a socket may have at most 107 bytes, and the folder's own path may be
  // longer.
  const socket = `/proc/self/fd/${folder}/${socketName}`
  const server = await listensAt(socket)
  if (server === 'taken') {
    closeSync(folder)
    await named.release()
    return undefined
  }
  return {
    release: async () => {
      if (server !== undefined) await closed(server)
      closeSync(folder)
      await named.release()
    },
  }
}

/** `taken` where a process that lives listens there; undefined where this file system has no sockets. */
async function listensAt(path: string): Promise<Server | 'taken' | undefined> {
  for (let tries = 0; tries < 3; tries += 1) {
    const server = createServer((line) => line.destroy())
    try {
      await listening(server, { path })
      const { ino } = statSync(path)
      // The socket file of a dead process was removed. Another process may have removed it at the same time and
      // listen already: the inode shows whose socket is there.
      if (tries > 0) await pause(100)
      if (statSync(path, { throwIfNoEntry: false })?.ino !== ino) return 'taken'
      server.unref()
      return server
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') return undefined
    }
    if (await answers(path)) return 'taken'
    rmSync(path, { force: true })
  }
  return 'taken'
}

/** Whether anybody listens at the path of a socket. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const line = connect({ path })
    line.once('connect', () => {
      line.destroy()
      resolve(true)
    })
    line.once('error', () => resolve(false))
  })
}

/**
 * Checks that no other process listens on a port before the edge threads do. They share theirs (SO_REUSEPORT), so a second
 * program on the same port would silently take half of the connections. Resolves with the port. For 0 it is a free one, because
 * several threads cannot share a port that each of them picks.
 */
export async function findPort(host: string, port: number, setting: string): Promise<number> {
  if (port === 0) return freePort(host, setting)
  const trouble = await listens(host, port)
  if (trouble === 'EADDRINUSE')
    throw new Error(`port ${port} is taken: stop what listens there, or set ${setting}`)
  if (trouble === 'EACCES') throw new Error(`port ${port} needs more rights: set ${setting} to 1024 or above`)
  if (trouble !== undefined)
    throw new Error(`cannot listen on ${host} port ${port} (${trouble}): see LISTEN_ADDRESS and ${setting}`)
  return port
}

/** Below those that Linux hands out by itself: one that it gave us could be another's before our threads listen on it. */
const freeFrom = 20_000
const freePorts = 10_000

/** A port that nobody listens on, and that no other process that looks for one this way gets while this one runs. */
async function freePort(host: string, setting: string): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = freeFrom + randomInt(freePorts)
    const claimed = await claim(`port ${port}`)
    if (claimed === undefined) continue
    const trouble = await listens(host, port)
    if (trouble === undefined) return port
    await claimed.release()
    if (trouble !== 'EADDRINUSE')
      throw new Error(`cannot listen on ${host} (${trouble}): see LISTEN_ADDRESS and ${setting}`)
  }
  throw new Error(`found no free port: set ${setting}`)
}

/** Why nobody can listen there now, by the code of the error; undefined: it goes. */
async function listens(host: string, port: number): Promise<string | undefined> {
  const server = createServer()
  try {
    await listening(server, { host, port })
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
  await closed(server)
  return undefined
}
