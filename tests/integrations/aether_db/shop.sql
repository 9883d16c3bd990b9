CREATE DATABASE shop CHARACTER SET utf8mb4;
CREATE DATABASE club CHARACTER SET utf8mb4;
CREATE DATABASE old CHARACTER SET utf8mb4;
CREATE DATABASE secret CHARACTER SET utf8mb4;
CREATE TABLE shop.members (
  id int PRIMARY KEY AUTO_INCREMENT, name varchar(40) NOT NULL COMMENT 'as on the card', town varchar(40), born date,
  joined datetime NOT NULL, notes text, tags json, balance decimal(10,2) NOT NULL DEFAULT 0, score double,
  flag bit(1), photo blob, KEY by_town (town), FULLTEXT KEY by_notes (notes)
) COMMENT 'who is in';
CREATE TABLE shop.orders (
  id int PRIMARY KEY AUTO_INCREMENT, member_id int NOT NULL, day date NOT NULL, total decimal(10,2) NOT NULL,
  state enum('open','paid') NOT NULL, CONSTRAINT of_member FOREIGN KEY (member_id) REFERENCES shop.members (id)
);
CREATE TABLE shop.items (id int, product varchar(40), quantity int, PRIMARY KEY (id, product));
CREATE TABLE club.events (id int PRIMARY KEY, title varchar(80), host_id int, at datetime COMMENT 'local time');
CREATE TABLE old.kept (id int PRIMARY KEY, word varchar(20));
CREATE TABLE old.other (id int PRIMARY KEY);
CREATE TABLE secret.salaries (id int PRIMARY KEY, amount int);
INSERT INTO shop.members (name, town, born, joined, notes, tags, balance, score, flag, photo) VALUES
  ('Ada', 'Berlin', '1990-02-28', '2026-01-05 08:30:00', '100% percent sure', '{"a": 1, "b": "x"}', 12.50, 3.5, 1, x'ff00fe'),
  ('Bo', 'Paris', '1984-12-31', '2025-06-01 23:59:59', 'under_score', '{"a": 2, "b": "ü"}', -3.00, 1, 0, 'text'),
  ('Cy', 'Berlin', NULL, '2024-01-01 00:00:00', NULL, NULL, 0, NULL, NULL, NULL),
  ('Dörte', NULL, '2001-07-04', '2026-11-20 12:00:00', 'two\nlines', '[]', 99999999.99, 2.25, 1, '');
INSERT INTO shop.orders (member_id, day, total, state) VALUES
  (1, '2026-01-01', 10.00, 'paid'), (1, '2026-01-03', 25.50, 'open'), (2, '2026-01-03', 7.25, 'paid'), (4, '2026-02-01', 120, 'open');
INSERT INTO shop.items VALUES (1, 'pen', 2), (2, 'ink', 1), (2, 'paper', 5), (4, 'lamp', 1);
INSERT INTO club.events VALUES (1, 'Opening', 1, '2026-05-01 18:00:00'), (2, 'Chess', 4, NULL);
INSERT INTO old.kept VALUES (1, 'one'), (2, 'two');
INSERT INTO secret.salaries VALUES (1, 1000000);
CREATE VIEW shop.active_members AS SELECT id, name FROM shop.members WHERE score IS NOT NULL;
CREATE SEQUENCE shop.numbers;
CREATE FUNCTION shop.bump() RETURNS int MODIFIES SQL DATA BEGIN UPDATE shop.members SET score = 9 WHERE id = 1; RETURN 1; END;
CREATE PROCEDURE shop.wipe() DELETE FROM shop.items;
CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'only-reading-ü€';
GRANT SELECT, SHOW VIEW ON shop.* TO reader@'127.0.0.1';
GRANT SELECT, SHOW VIEW ON club.* TO reader@'127.0.0.1';
GRANT SELECT, SHOW VIEW ON old.* TO reader@'127.0.0.1';
CREATE USER writer@'127.0.0.1' IDENTIFIED BY 'may-do-anything';
GRANT ALL PRIVILEGES ON *.* TO writer@'127.0.0.1';
