/** An object that is being made: its fields are still set, one after the other. */
export type Writable<T> = { -readonly [Name in keyof T]: T[Name] }
