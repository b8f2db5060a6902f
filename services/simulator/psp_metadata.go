package simulator

import (
	"gorm.io/gorm/clause"

	"github.com/einmal/einmal/pkg/database"
)

// metadatum is one name that a caller has written on an object.
type metadatum struct {
	Object string `gorm:"primaryKey"`
	Name   string `gorm:"primaryKey"`
	Value  string
}

// TableName is where metadata are.
func (metadatum) TableName() string { return "psp_metadata" }

// writeMetadata adds to what is written on an object. An empty value removes a name.
func writeMetadata(tx database.Tx, object string, metadata map[string]string) error {
	for name, value := range metadata {
		m := metadatum{object, name, value}
		var err error
		if value == "" {
			err = tx.Where("object = ? AND name = ?", object, name).Delete(&metadatum{}).Error
		} else {
			err = tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "object"}, {Name: "name"}}, UpdateAll: true}).Create(&m).Error
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// metadataOf is what is written on an object.
func metadataOf(tx database.Tx, object string) (map[string]string, error) {
	all, err := metadataOfAll(tx, []string{object})
	return all[object], err
}

// metadataOfAll is what is written on each of the objects.
func metadataOfAll(tx database.Tx, objects []string) (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for _, object := range objects {
		all[object] = map[string]string{}
	}
	var rows []metadatum
	err := tx.Where("object IN ?", objects).Find(&rows).Error
	for _, m := range rows {
		all[m.Object][m.Name] = m.Value
	}
	return all, err
}
