import { createHash, randomBytes } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { ResumeStore } from '../resume-store.js'

/** Remembers uploads in files of a folder, readable by their owner only. Each write is whole or not there. */
export function fileStore(folder: string): ResumeStore {
  const place = (key: string): string => join(folder, createHash('sha256').update(key).digest('hex'))
  return {
    async get(key) {
      try {
        return await readFile(place(key), 'utf8')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw error
      }
    },
    async set(key, value) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const draft = `${place(key)}.${randomBytes(6).toString('hex')}`
      const file = await open(draft, 'wx', 0o600)
      try {
        await file.writeFile(value)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(draft, place(key))
    },
    delete: (key) => rm(place(key), { force: true }),
  }
}
